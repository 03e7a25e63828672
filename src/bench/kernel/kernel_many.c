/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/kernel/kernel_many.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

/* As in <linux/bpf.h> of Linux 6.6: that of the build may be older. */
#define UPROBE_MULTI 48u
union attributes {
    struct {
        uint32_t type, n_instructions;
        uint64_t instructions, licence;
        uint32_t log_level, log_bytes;
        uint64_t log;
        uint32_t kernel_version, flags;
        char name[BPF_OBJ_NAME_LEN];
        uint32_t device, attach_type;
    } load;
    struct {
        uint32_t program, target, attach_type, flags;
        uint64_t path, offsets, counters, cookies;
        uint32_t n, multi_flags, pid;
    } link;
    char bytes[128];
};

static int call(int command, union attributes *a)
{
    const long result = syscall(SYS_bpf, command, a, sizeof(*a));
    return result < 0 ? -errno : (int)result;
}

/* r0 = 0; exit */
static int load_empty(void)
{
    static const struct bpf_insn code[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K},
                                           {.code = BPF_JMP | BPF_EXIT}};
    union attributes a;
    memset(&a, 0, sizeof(a));
    a.load.type = BPF_PROG_TYPE_KPROBE;
    a.load.n_instructions = 2;
    a.load.instructions = (uintptr_t)code;
    a.load.licence = (uintptr_t) "GPL";
    a.load.attach_type = UPROBE_MULTI;
    return call(BPF_PROG_LOAD, &a);
}

int kernel_many_attach(const struct kernel_probe_target *target, uint32_t n, uint32_t stride, struct error *e)
{
    uint64_t *offsets = mem_array(n, sizeof(*offsets));
    union attributes a;
    int fd = load_empty();
    for (uint32_t i = 0; i < n; i++)
        offsets[i] = target->offset + (uint64_t)i * stride;
    memset(&a, 0, sizeof(a));
    a.link.program = (uint32_t)fd;
    a.link.attach_type = UPROBE_MULTI;
    a.link.path = (uintptr_t)target->file;
    a.link.offsets = (uintptr_t)offsets;
    a.link.n = n;
    a.link.pid = (uint32_t)target->pid;
    const int link = fd < 0 ? fd : call(BPF_LINK_CREATE, &a);
    if (fd >= 0)
        close(fd);
    free(offsets);
    if (link < 0)
        return error_set(e, -link,
                         "cannot attach many uprobes at once: %s; it takes root, and Linux 6.6 or later",
                         strerror(-link));
    return link;
}
