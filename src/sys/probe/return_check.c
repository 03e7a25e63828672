/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/probe/return_check.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/probe/probe_price.h"

#define PMU         "/sys/bus/event_source/devices/uprobe/"
#define AT_A_RETURN 1u /* in the event's config: PMU "format/retprobe" */

/* 6.11 to 6.13 may have the mistake; fixes of 6.12 and 6.13 are in some distributions' kernels only. */
static bool may_harm(void)
{
    struct utsname u;
    unsigned major, minor;
    return uname(&u) || sscanf(u.release, "%u.%u", &major, &minor) != 2 ||
           (major == 6 && minor >= 11 && minor <= 13);
}

static bool forbid(unsigned call)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof(code) / sizeof(*code), code};
    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
           !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static void be_tried(int go, unsigned forbidden_call)
{
    char word;
    if (read(go, &word, 1) != 1 || !forbid(forbidden_call))
        _exit(1);
    probe_price_call_ns(PROBE_PLACE_NOP);
    _exit(0);
}

/* A probe without a program: the kernel counts the returns. */
static int attach(pid_t pid)
{
    unsigned type = 0;
    FILE *f = fopen(PMU "type", "re");
    const bool has = f && fscanf(f, "%u", &type) == 1;
    if (f)
        fclose(f);
    struct perf_event_attr attr = {.size = sizeof(attr),
                                   .type = type,
                                   .config = AT_A_RETURN,
                                   .uprobe_path = (uintptr_t)PROBE_PRICE_PROGRAM,
                                   .probe_offset = probe_price_offset(PROBE_PLACE_NOP)};
    errno = EOPNOTSUPP;
    return has ? (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC) : -1;
}

int return_check_try(unsigned forbidden_call)
{
    int pipes[2], status = 0;
    if (pipe(pipes))
        return -errno;
    const pid_t pid = fork();
    if (!pid) {
        close(pipes[1]);
        be_tried(pipes[0], forbidden_call);
    }
    const int probe = pid > 0 ? attach(pid) : -1, why = errno;
    if (probe >= 0 && write(pipes[1], "", 1) < 0)
        kill(pid, SIGKILL);
    close(pipes[0]);
    close(pipes[1]); /* without a probe it ends now */
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (probe < 0)
        return -why;
    close(probe);
    if (WIFEXITED(status) && WEXITSTATUS(status))
        return -EOPNOTSUPP; /* there are no filters */
    return WIFEXITED(status);
}

int return_check(const char *tool, struct error *e)
{
    static int found = -1; /* it takes some ms */
    if (found < 0)
        found = !may_harm() || return_check_try(RETURN_CHECK_URETPROBE) != 0;
    if (found)
        return 0;
    return error_set(
        e, ENOTSUP,
        "%s needs probes on returns, by which this kernel ends programs with seccomp filters: use Linux "
        "6.14, 6.13.3 or 6.12.14",
        tool);
}
