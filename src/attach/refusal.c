/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/refusal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attach/stop.h"
#include "base/buf.h"
#include "base/read_file.h"
#include "collect/process/container.h"
#include "collect/process/proc.h"

/* Returns where the value of a line of /proc/PID/status begins; "": there is no such line. */
static const char *value_of(const struct buf *status, const char *name)
{
    const char *at = strstr(buf_str(status), name);
    if (!at)
        return "";
    at += strlen(name);
    return at + strspn(at, "\t ");
}

static int refuse_traced(pid_t pid, pid_t tracer, struct error *e)
{
    struct buf name = BUF_INIT;
    proc_name(tracer, &name);
    const int bad = error_set(e, EBUSY, "process %d is traced by %s (pid %d): end that first", (int)pid,
                              name.len ? buf_str(&name) : "another process", (int)tracer);
    buf_release(&name);
    return bad;
}

/* Each thread may have filters of its own. */
static int refuse_by_threads(pid_t pid, struct error *e)
{
    struct thread_ids ids = {0};
    struct proc_status status;
    int bad = stop_list(pid, &ids) ? 0 : error_set(e, ESRCH, "there is no process %d", (int)pid);
    vec_each (const pid_t, tid, &ids)
        if (!bad && proc_status(*tid, &status) && status.seccomp)
            bad = error_set(
                e, EPERM,
                "process %d restricts its system calls (seccomp), and what attaching needs might end it: "
                "start it with allium run",
                (int)pid);
    vec_release(&ids);
    return bad;
}

static int refuse_by_status(pid_t pid, const struct buf *status, struct error *e)
{
    const char state = *value_of(status, "\nState:");
    const pid_t tracer = (pid_t)strtol(value_of(status, "\nTracerPid:"), NULL, 10),
                tgid = (pid_t)strtol(value_of(status, "\nTgid:"), NULL, 10);
    if (tgid != pid)
        return error_set(e, ESRCH, "%d is a thread of process %d: attach to that", (int)pid, (int)tgid);
    if (proc_is_kernel(pid))
        return error_set(e, EPERM, "process %d is a thread of the kernel: see allium sys memleak", (int)pid);
    if (state == 'Z' || state == 'X')
        return error_set(e, ESRCH, "process %d has ended, and waits for its parent", (int)pid);
    if (tracer)
        return refuse_traced(pid, tracer, e);
    if (state == 'T')
        return error_set(e, EBUSY, "process %d is stopped: kill -CONT %d lets it go on", (int)pid, (int)pid);
    if (state == 'D')
        return error_set(e, EBUSY, "process %d waits in the kernel (state D): try again later", (int)pid);
    return refuse_by_threads(pid, e);
}

int refusal_of_process(pid_t pid, struct error *e)
{
    char path[64];
    struct buf status = BUF_INIT;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    int bad = pid == getpid() ? error_set(e, EINVAL, "process %d is allium itself", (int)pid)
              : file_read(path, 1 << 16, &status) ? error_set(e, ESRCH, "there is no process %d", (int)pid)
                                                  : refuse_by_status(pid, &status, e);
    buf_release(&status);
    if (!bad && container_has_own_files(pid))
        bad = error_set(
            e, ENOTSUP,
            "process %d has another root or other mounts than allium, where its library is not: start it "
            "with allium run",
            (int)pid);
    return bad;
}

static bool is_known_allocator(const char *name)
{
    static const char *const known[] = {"libc.so.",    "libjemalloc",     "libtcmalloc",
                                        "libmimalloc", "liballium-agent", "ld-linux"};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (!strncmp(name, known[i], strlen(known[i])))
            return true;
    return false;
}

int refusal_of_maps(const struct target *t, struct error *e)
{
    /* Libraries whose malloc() is more than an allocator. */
    static const struct {
        const char *begin, *what;
    } others[] = {
        {"libasan.", "AddressSanitizer"},
        {"libtsan.", "ThreadSanitizer"},
        {"libhwasan.", "HWAddressSanitizer"},
        {"liblsan.", "LeakSanitizer"},
        {"vgpreload_", "valgrind"},
        {"ld-musl-", "musl, another C library"},
        {"libc.musl-", "musl, another C library"},
    };
    bool has_libc = false;
    vec_each (const struct space_mapping, m, &t->maps) {
        const char *base = m->file ? strrchr(m->file->path, '/') : NULL;
        for (size_t i = 0; base && i < sizeof(others) / sizeof(others[0]); i++)
            if (!strncmp(base + 1, others[i].begin, strlen(others[i].begin)))
                return error_set(e, ENOTSUP,
                                 "process %d runs with %s: its memory cannot be observed from here",
                                 (int)t->pid, others[i].what);
        if (base && !strncmp(base + 1, "liballium-agent.so", 18))
            return error_set(e, EEXIST, "process %d was started with allium: see allium report %d",
                             (int)t->pid, (int)t->pid);
        has_libc |= base && !strncmp(base + 1, "libc.so.6", 9) && m->protection & PROT_EXEC;
    }
    vec_each (struct target_module *, m, &t->modules)
        if ((*m)->is_readable && !is_known_allocator(target_module_name(*m)) &&
            target_symbol(*m, "malloc", NULL))
            return error_set(e, ENOTSUP,
                             "process %d has a malloc() of its own in %s, which is not known here",
                             (int)t->pid, target_module_name(*m));
    return has_libc
               ? 0
               : error_set(e, ENOTSUP,
                           "process %d does not use the shared C library of GNU, which loads allium's: it is "
                           "statically linked, or uses another one",
                           (int)t->pid);
}
