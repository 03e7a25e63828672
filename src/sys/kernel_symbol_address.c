/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/kernel_symbol_address.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/filter.h>

#include "base/buf.h"
#include "base/read_file.h"

#define NAME_BYTES         64u
#define KALLSYMS_BYTES_MAX (256u << 20)

/* What the program gets and gives back. */
struct rules {
    char name[NAME_BYTES];
    uint64_t address;
};

/*
 * address = 0; bpf_kallsyms_lookup_name(name, bytes, 0, &address). The helper wants both on the stack: name at its end,
 * the address below it.
 */
#define MOVE(to, from)                                                                                       \
    {                                                                                                        \
        .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (to), .src_reg = (from)                              \
    }
#define SET(to, value)                                                                                       \
    {                                                                                                        \
        .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (to), .imm = (value)                                 \
    }
#define ADD(to, value)                                                                                       \
    {                                                                                                        \
        .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = (to), .imm = (value)                                 \
    }
#define LOAD(to, from, at)                                                                                   \
    {                                                                                                        \
        .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = (to), .src_reg = (from), .off = (int16_t)(at)         \
    }
#define STORE(to, at, from)                                                                                  \
    {                                                                                                        \
        .code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = (to), .src_reg = (from), .off = (int16_t)(at)         \
    }
#define COPY_NAME(at)                                                                                        \
    LOAD(BPF_REG_1, BPF_REG_6, at), STORE(BPF_REG_10, (int)(at) - (int)NAME_BYTES, BPF_REG_1)
#define ADDRESS_AT (-(int)NAME_BYTES - 8)

static int load_program(void)
{
    static const struct bpf_insn program[] = {
        MOVE(BPF_REG_6, BPF_REG_1),
        COPY_NAME(0),
        COPY_NAME(8),
        COPY_NAME(16),
        COPY_NAME(24),
        COPY_NAME(32),
        COPY_NAME(40),
        COPY_NAME(48),
        COPY_NAME(56),
        SET(BPF_REG_1, 0),
        STORE(BPF_REG_10, ADDRESS_AT, BPF_REG_1),
        MOVE(BPF_REG_1, BPF_REG_10),
        ADD(BPF_REG_1, -(int)NAME_BYTES),
        SET(BPF_REG_2, NAME_BYTES),
        SET(BPF_REG_3, 0),
        MOVE(BPF_REG_4, BPF_REG_10),
        ADD(BPF_REG_4, ADDRESS_AT),
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_kallsyms_lookup_name},
        LOAD(BPF_REG_1, BPF_REG_10, ADDRESS_AT),
        STORE(BPF_REG_6, offsetof(struct rules, address), BPF_REG_1),
        SET(BPF_REG_0, 0),
        {.code = BPF_JMP | BPF_EXIT},
    };
    LIBBPF_OPTS(bpf_prog_load_opts, how, .prog_flags = BPF_F_SLEEPABLE);
    return bpf_prog_load(BPF_PROG_TYPE_SYSCALL, NULL, "GPL", program, sizeof(program) / sizeof(*program),
                         &how);
}

/* "ffffffff82a0c1c0 D avenrun", one of the kernel's own. */
static uint64_t read_kallsyms(const char *name)
{
    struct buf text = BUF_INIT, end = BUF_INIT;
    buf_printf(&end, " %s\n", name);
    file_read("/proc/kallsyms", KALLSYMS_BYTES_MAX, &text);
    const char *found = text.len ? memmem(text.data, text.len, end.data, end.len) : NULL;
    while (found && found > text.data && found[-1] != '\n')
        found--;
    uint64_t address = found ? strtoull(found, NULL, 16) : 0;
    buf_release(&text);
    buf_release(&end);
    return address;
}

uint64_t kernel_symbol_address(const char *name)
{
    struct rules asked = {.address = 0};
    LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &asked, .ctx_size_in = sizeof(asked));
    if (strlen(name) >= NAME_BYTES)
        return 0;
    memcpy(asked.name, name, strlen(name));
    int fd = load_program();
    if (fd < 0)
        return errno == EINVAL ? read_kallsyms(name) : 0; /* no such helper, or no programs of this kind */
    int error = bpf_prog_test_run_opts(fd, &run);
    close(fd);
    return error ? 0 : asked.address;
}

uint32_t kernel_struct_bytes(const char *name)
{
    struct btf *kernel = btf__load_vmlinux_btf();
    int id = kernel ? btf__find_by_name_kind(kernel, name, BTF_KIND_STRUCT) : -1;
    uint32_t bytes = id > 0 ? btf__type_by_id(kernel, (uint32_t)id)->size : 0;
    btf__free(kernel);
    return bytes;
}
