/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/kernel_symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <linux/bpf.h>

#include "base/read_file.h"
#include "base/sigsafe/clock_ns.h"
#include "symbol/kallsyms.h"
#include "symbol/symbol_names.h"

#define KALLSYMS_BYTES_MAX (256u << 20)
#define MODULES_BYTES_MAX  (16u << 20)
#define PROGRAMS_MAX       65536u
#define AGAIN_NS           1000000000u
#define HALF_OF_SPACE      (1ull << 63) /* of x86-64, arm64 and riscv: the kernel has the upper one */

struct kernel_symbols {
    char *root;
    struct kallsyms table;
    struct symbol_names names;
    uint64_t checked_ns; /* when the table, or what it was made of, was last looked at */
    uint64_t mark;       /* of the modules and BPF programs that the table has */
    unsigned reads;
    bool frozen; /* it is not read again */
};

static int read_below(const struct kernel_symbols *k, const char *path, size_t max, struct buf *out)
{
    struct buf whole = BUF_INIT;
    buf_printf(&whole, "%s%s", k->root, path);
    int bad = file_read(buf_str(&whole), max, out);
    buf_release(&whole);
    return bad;
}

/* ---- what comes and goes ---- */

static uint64_t mix(uint64_t mark, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    for (; len; len--, at++)
        mark = (mark ^ *at) * 0x100000001b3u; /* FNV-1a */
    return mark;
}

/* Their ids only grow. Who may not ask gets no other mark when programs change: then only an address without a
 * symbol tells. */
static uint64_t mix_programs(uint64_t mark)
{
    union bpf_attr next;
    for (unsigned n = 0, id = 0; n < PROGRAMS_MAX; n++) {
        memset(&next, 0, sizeof(next));
        next.start_id = id;
        if (syscall(SYS_bpf, BPF_PROG_GET_NEXT_ID, &next, sizeof(next)))
            break;
        id = next.next_id;
        mark = mix(mark, &id, sizeof(id));
    }
    return mark;
}

/* "ext4 1064960 1 - Live 0xffffffffc0201000": all but how often it is in use, which always changes. */
static uint64_t mix_modules(uint64_t mark, const char *text)
{
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t len = strcspn(line, "\n"), name = strcspn(line, " \n");
        const char *address = memmem(line, len, " 0x", 3);
        mark = mix(mark, line, name);
        mark = mix(mark, address, address ? (size_t)(line + len - address) : 0);
    }
    return mark;
}

static uint64_t mark_of(const char *modules)
{
    return mix_programs(mix_modules(0xcbf29ce484222325u, modules));
}

/* ---- the table ---- */

static int read_table(struct kernel_symbols *k, struct kallsyms *table, struct error *e)
{
    struct buf symbols = BUF_INIT, modules = BUF_INIT;
    read_below(k, "/proc/modules", MODULES_BYTES_MAX, &modules); /* none: a kernel without modules */
    k->mark = mark_of(buf_str(&modules)); /* before the symbols: what comes in between is noticed later */
    int bad = read_below(k, "/proc/kallsyms", KALLSYMS_BYTES_MAX, &symbols);
    if (bad)
        error_set(e, -bad, "kernel symbols: %s/proc/kallsyms: %s%s", k->root, strerror(-bad),
                  bad == -ENOENT ? "; the kernel was built without CONFIG_KALLSYMS" : "");
    else
        kallsyms_parse(table, buf_str(&symbols), buf_str(&modules));
    buf_release(&symbols);
    buf_release(&modules);
    k->reads++;
    k->checked_ns = clock_ns(CLOCK_MONOTONIC);
    return bad;
}

/* No address at all, but there are symbols: what to do about it depends on what hides them. */
static int explain_hidden(const struct kernel_symbols *k, struct error *e)
{
    struct buf text = BUF_INIT;
    read_below(k, "/proc/sys/kernel/kptr_restrict", 16, &text);
    bool from_all = atoi(buf_str(&text)) > 1;
    buf_release(&text);
    return from_all ? error_set(e, EPERM,
                                "kernel symbols: kernel.kptr_restrict=2 hides their addresses from all "
                                "users; sysctl kernel.kptr_restrict=1 shows them to root")
                    : error_set(e, EPERM,
                                "kernel symbols: /proc/kallsyms shows no addresses without privilege; "
                                "run as root (CAP_SYSLOG)");
}

int kernel_symbols_new(const char *root, struct kernel_symbols **out, struct error *e)
{
    struct kernel_symbols *k = mem_alloc(sizeof(*k));
    *out = NULL;
    k->root = mem_strdup(root);
    int bad = read_table(k, &k->table, e);
    if (!bad && !k->table.all.len)
        bad = k->table.hidden
                  ? explain_hidden(k, e)
                  : error_set(e, EPROTO, "kernel symbols: %s/proc/kallsyms contains no symbols", root);
    if (bad) {
        kernel_symbols_free(k);
        return bad;
    }
    *out = k;
    return 0;
}

void kernel_symbols_freeze(struct kernel_symbols *k)
{
    k->frozen = true;
}

void kernel_symbols_free(struct kernel_symbols *k)
{
    if (!k)
        return;
    kallsyms_release(&k->table);
    symbol_names_release(&k->names);
    free(k->root);
    free(k);
}

static void read_again(struct kernel_symbols *k)
{
    struct kallsyms table = {.lines = 0};
    if (!read_table(k, &table, NULL) && table.all.len) {
        kallsyms_inherit(&table, &k->table);
        kallsyms_release(&k->table);
        k->table = table;
    } else {
        kallsyms_release(&table);
    }
}

static bool has_changed(struct kernel_symbols *k)
{
    struct buf modules = BUF_INIT;
    read_below(k, "/proc/modules", MODULES_BYTES_MAX, &modules);
    bool changed = mark_of(buf_str(&modules)) != k->mark;
    buf_release(&modules);
    k->checked_ns = clock_ns(CLOCK_MONOTONIC);
    return changed;
}

/* ---- finding ---- */

const char *kernel_symbols_function(struct kernel_symbols *k, const char *name)
{
    name = kallsyms_without_mark(name);
    const char *function = symbol_names_function(&k->names, name);
    return function ? function : symbol_names_store(&k->names, name);
}

uint64_t kernel_symbols_byte_of_frame(const struct kernel_symbols *k, uint64_t address)
{
    return kallsyms_byte_of_frame(&k->table, address);
}

bool kernel_symbols_find(struct kernel_symbols *k, uint64_t address, struct kernel_symbol *out)
{
    if (address < HALF_OF_SPACE)
        return false;
    size_t at = kallsyms_find(&k->table, address);
    bool doubtful = at == KALLSYMS_NONE || kallsyms_passes(&k->table, at);
    if (doubtful && !k->frozen && clock_ns(CLOCK_MONOTONIC) - k->checked_ns >= AGAIN_NS &&
        (at == KALLSYMS_NONE || has_changed(k))) {
        read_again(k);
        at = kallsyms_find(&k->table, address);
    }
    if (at == KALLSYMS_NONE)
        return false;
    const char *name = kallsyms_name(&k->table, at);
    *out =
        (struct kernel_symbol){.name = symbol_names_store(&k->names, name),
                               .function = kernel_symbols_function(k, name),
                               .module = symbol_names_store(&k->names, kallsyms_module_name(&k->table, at)),
                               .offset = address - k->table.all.at[at].address,
                               .bytes = kallsyms_bytes(&k->table, at),
                               .gone = k->table.all.at[at].gone};
    return true;
}

uint64_t kernel_symbols_begin(const struct kernel_symbols *k)
{
    return k->table.stext;
}

const struct kallsyms *kernel_symbols_table(const struct kernel_symbols *k)
{
    return &k->table;
}

unsigned kernel_symbols_reads(const struct kernel_symbols *k)
{
    return k->reads;
}
