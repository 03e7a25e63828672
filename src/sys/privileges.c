/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

struct capabilities {
    uint64_t effective, permitted, inheritable;
};

static int get(struct capabilities *c)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    *c = (struct capabilities){0};
    if (syscall(SYS_capget, &head, data))
        return -errno;
    c->effective = data[0].effective | (uint64_t)data[1].effective << 32;
    c->permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
    c->inheritable = data[0].inheritable | (uint64_t)data[1].inheritable << 32;
    return 0;
}

static int set(const struct capabilities *c)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {
        {(uint32_t)c->effective, (uint32_t)c->permitted, (uint32_t)c->inheritable},
        {(uint32_t)(c->effective >> 32), (uint32_t)(c->permitted >> 32), (uint32_t)(c->inheritable >> 32)},
    };
    return syscall(SYS_capset, &head, data) ? -errno : 0;
}

#define BIT(capability) (1ull << (capability))

void privileges_missing(struct buf *b)
{
    static const struct {
        const char *name;
        int capability;
    } needed[] = {{"CAP_BPF", CAP_BPF}, {"CAP_PERFMON", CAP_PERFMON}};
    struct capabilities c;
    if (get(&c) || c.effective & BIT(CAP_SYS_ADMIN))
        return;
    for (unsigned i = 0; i < sizeof(needed) / sizeof(*needed); i++)
        if (!(c.effective & BIT(needed[i].capability)))
            buf_printf(b, "%s%s", b->len ? " and " : "", needed[i].name);
}

bool privileges_all(void)
{
    struct capabilities c;
    return !get(&c) && c.effective & BIT(CAP_SYS_ADMIN);
}

/*
 * bpf(2) on maps takes CAP_BPF before 5.19 and where unprivileged BPF is off; /proc of others CAP_SYS_PTRACE; their
 * files CAP_DAC_READ_SEARCH; addresses in kallsyms CAP_SYSLOG; the file of a recording is ours.
 */
static const uint64_t kept = BIT(CAP_BPF) | BIT(CAP_PERFMON) | BIT(CAP_SYS_PTRACE) |
                             BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_SYSLOG) |
                             BIT(CAP_KILL);

int privileges_drop(void)
{
    struct capabilities c;
    int error = get(&c);
    if (error)
        return error;
    uint64_t dropped = c.permitted & ~kept;
    /* Before CAP_SETPCAP goes: root would get everything back with execve(). */
    for (int i = 0; i < 64; i++)
        if (dropped & BIT(i) && c.effective & BIT(CAP_SETPCAP))
            prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
    c.effective &= kept;
    c.permitted &= kept;
    c.inheritable &= kept;
    return set(&c);
}
