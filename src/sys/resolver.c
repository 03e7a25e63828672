/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/resolver.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "collect/kernel/cgroup.h"
#include "collect/kernel/gfp_words.h"
#include "collect/ledger/profile_names.h"
#include "collect/unwind/user_stack.h"
#include "model/profile/wrappers.h"
#include "symbol/kernel_source.h"
#include "symbol/kernel_symbols.h"
#include "sys/record/kernel_capture.h"
#include "sys/session.h"
#include "sys/stack_samples.h"

struct names {
    struct resolver_wanted wanted;
    struct sideband *band;
    struct address_spaces *spaces;
    struct user_stacks *users;
    struct symbols *symbols;
    uint64_t untrusted, nameless;
    struct kernel_symbols *kernel;
    struct error no_kernel; /* why that is NULL */
    struct kernel_source *source;
    struct gfp_words words;
    bool kernel_queried, words_queried;
    struct cgroups *cgroups;
};

struct names *resolver_new(const struct resolver_wanted *wanted)
{
    struct names *n = mem_alloc(sizeof(*n));
    n->wanted = *wanted;
    if (wanted->spaces && !sideband_open(NULL, &n->band, NULL)) {
        n->spaces = address_spaces_new(n->band, NULL);
        n->users = user_stacks_new(n->spaces);
    }
    return n;
}

void resolver_free(struct names *n)
{
    if (!n)
        return;
    kernel_source_free(n->source);
    symbols_free(n->symbols);
    kernel_symbols_free(n->kernel);
    gfp_words_release(&n->words);
    cgroups_free(n->cgroups);
    if (n->spaces) {
        user_stacks_free(n->users);
        address_spaces_free(n->spaces);
        sideband_close(n->band);
    }
    free(n);
}

struct address_spaces *resolver_spaces(struct names *n)
{
    return n->spaces;
}

int resolver_fd(const struct names *n)
{
    return n->spaces ? sideband_fd(n->band) : -1;
}

void resolver_drain(struct names *n)
{
    if (n->spaces)
        address_spaces_drain(n->spaces);
}

uint64_t resolver_lost(const struct names *n)
{
    return n->spaces ? address_spaces_counts(n->spaces).lost : 0;
}

struct user_stacks *resolver_users(struct names *n)
{
    return n->users;
}

void resolver_know(struct names *n, int pid)
{
    if (n->spaces)
        address_spaces_reread(n->spaces, pid);
}

bool resolver_meet(struct names *n, uint64_t most_ns)
{
    return !n->spaces || address_spaces_meet(n->spaces, most_ns);
}

uint64_t resolver_nameless(const struct names *n)
{
    return n->nameless;
}

uint64_t resolver_untrusted(const struct names *n)
{
    return n->untrusted;
}

const char *resolver_kernel_hidden(const struct names *n)
{
    return n->no_kernel.text;
}

static struct symbols *symbols_of(struct names *n)
{
    if (!n->symbols) {
        char *cache = profile_names_cache_dir();
        n->symbols = symbols_new(cache);
        free(cache);
    }
    return n->symbols;
}

static struct kernel_symbols *kernel_of(struct names *n)
{
    if (!n->kernel_queried && kernel_symbols_new("", &n->kernel, &n->no_kernel))
        n->kernel = NULL;
    n->kernel_queried = true;
    return n->kernel;
}

void resolver_freeze(struct names *n)
{
    struct kernel_symbols *k = kernel_of(n);
    if (k)
        kernel_symbols_freeze(k);
}

static struct kernel_source *source_of(struct names *n)
{
    struct kernel_symbols *k = kernel_of(n);
    if (!n->source && (n->wanted.vmlinux || n->wanted.finder) && k) {
        n->source = kernel_source_new(n->wanted.vmlinux, k, symbols_of(n));
        kernel_source_use_finder(n->source, n->wanted.finder);
    }
    return n->source;
}

/* An address in the kernel, and what to take off to be within the instruction meant: 1 of a return address. */
struct code {
    uint64_t address;
    unsigned before;
};

/* The byte by which a frame is named. */
static uint64_t byte_of(struct names *n, uint64_t address)
{
    const struct kernel_symbols *symbols = kernel_of(n);
    return symbols ? kernel_symbols_byte_of_frame(symbols, address) : address - 1;
}

static struct code call(struct names *n, uint64_t address)
{
    return (struct code){address, (unsigned)(address - byte_of(n, address))};
}

static void add_line(struct names *n, struct buf *b, const struct symbol_frame *f)
{
    const char *file = kernel_source_file(n->source, f);
    if (file && f->line)
        buf_printf(b, " (%s:%u)", file, f->line);
    else if (file)
        buf_printf(b, " (%s)", file);
}

/* "alloc_empty_file+0x1b [module]" */
static void add_symbol(struct names *n, struct buf *b, struct code c)
{
    struct kernel_symbol k;
    struct kernel_symbols *symbols = kernel_of(n);
    if (!symbols || !kernel_symbols_find(symbols, c.address - c.before, &k)) {
        buf_printf(b, "0x%" PRIx64, c.address);
        return;
    }
    buf_addstr(b, k.name);
    if (k.offset + c.before)
        buf_printf(b, "+0x%" PRIx64, k.offset + c.before);
    if (*k.module)
        buf_printf(b, " [%s]", k.module);
}

void resolver_add_kernel_call(struct names *n, struct buf *b, uint64_t address)
{
    add_symbol(n, b, call(n, address));
}

void resolver_add_kernel_function(struct names *n, struct buf *b, uint64_t address)
{
    struct kernel_symbol k;
    struct kernel_symbols *symbols = kernel_of(n);
    if (symbols && kernel_symbols_find(symbols, byte_of(n, address), &k))
        buf_printf(b, "%s%s%s%s", k.function, *k.module ? " [" : "", k.module, *k.module ? "]" : "");
    else
        buf_printf(b, "0x%" PRIx64, address);
}

uint64_t resolver_kernel_number(struct names *n, uint64_t address)
{
    struct kernel_symbol k;
    struct kernel_symbols *symbols = kernel_of(n);
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    if (!symbols || !kernel_symbols_find(symbols, byte_of(n, address), &k))
        return 0;
    if (!*k.module && kernel_symbols_begin(symbols))
        return address - kernel_symbols_begin(symbols);
    for (const char *at = k.name; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    return (hash & UINT64_C(0xffffffff)) << 24 | ((k.offset + (address - byte_of(n, address))) & 0xffffff);
}

static void add_helper(struct names *n, struct buf *b, uint64_t address)
{
    struct kernel_symbol k;
    struct kernel_symbols *symbols = n->wanted.helpers ? kernel_of(n) : NULL;
    if (symbols && kernel_symbols_find(symbols, byte_of(n, address), &k) &&
        wrappers_have(n->wanted.helpers, k.function))
        buf_addstr(b, KERNEL_CAPTURE_HELPER);
}

static void name_code(struct names *n, struct table *t, uint32_t column, struct code c)
{
    struct buf b = BUF_INIT;
    struct kernel_source *source = n->wanted.lines ? source_of(n) : NULL;
    const struct symbol_frame *f = source ? kernel_source_call(source, c.address - c.before) : NULL;
    add_symbol(n, &b, c);
    if (c.before)
        add_helper(n, &b, c.address);
    if (f)
        add_line(n, &b, f);
    table_text(t, column, buf_str(&b));
    buf_release(&b);
}

void resolver_kernel_call(struct sys_session *s, struct table *t, uint32_t column, uint64_t address)
{
    name_code(s->names, t, column, call(s->names, address));
}

void resolver_kernel_code(struct sys_session *s, struct table *t, uint32_t column, uint64_t address)
{
    name_code(s->names, t, column, (struct code){address, 0});
}

void resolver_kernel_function(struct sys_session *s, struct table *t, uint32_t column, uint64_t address)
{
    struct buf b = BUF_INIT;
    resolver_add_kernel_function(s->names, &b, address);
    add_helper(s->names, &b, address);
    table_text(t, column, buf_str(&b));
    buf_release(&b);
}

bool resolver_kernel_frames(struct names *n, uint64_t address, struct symbol_frames *out)
{
    struct kernel_source *source = source_of(n);
    return source && kernel_source_call_frames(source, byte_of(n, address), out);
}

const char *resolver_kernel_frame_file(const struct names *n, const struct symbol_frame *f)
{
    return kernel_source_file(n->source, f);
}

static void add_place(struct names *n, struct buf *b, uint64_t address, bool directory)
{
    struct kernel_source *source = source_of(n);
    const struct symbol_frame *f = source ? kernel_source_call(source, byte_of(n, address)) : NULL;
    const char *file = f ? kernel_source_file(source, f) : NULL, *slash = file ? strrchr(file, '/') : NULL;
    if (!file) {
        buf_addstr(b, "[unknown] ");
        resolver_add_kernel_function(n, b, address);
    } else if (!directory) {
        buf_addstr(b, file);
    } else {
        buf_add(b, slash ? file : ".", slash ? (size_t)(slash - file) : 1);
    }
}

void resolver_add_kernel_file(struct names *n, struct buf *b, uint64_t address)
{
    add_place(n, b, address, false);
}

static void name_place(struct names *n, struct table *t, uint32_t column, uint64_t address, bool directory)
{
    struct buf b = BUF_INIT;
    add_place(n, &b, address, directory);
    table_text(t, column, buf_str(&b));
    buf_release(&b);
}

void resolver_kernel_file(struct sys_session *s, struct table *t, uint32_t column, uint64_t address)
{
    name_place(s->names, t, column, address, false);
}

void resolver_kernel_directory(struct sys_session *s, struct table *t, uint32_t column, uint64_t address)
{
    name_place(s->names, t, column, address, true);
}

bool resolver_kernel_is_bpf(struct names *n, uint64_t address)
{
    static const char *const begin[] = {
        "bpf_prog_",           "bpf_trace_run",        "trace_call_bpf",       "perf_trace_",
        "perf_call_bpf_enter", "__bpf_trace_",         "__traceiter_",         "bpf_trampoline_",
        "bpf_get_stack",       "bpf_overflow_handler", "__perf_event_overflow"};
    struct kernel_symbol k;
    struct kernel_symbols *symbols = kernel_of(n);
    if (!symbols || !kernel_symbols_find(symbols, byte_of(n, address), &k))
        return false;
    for (size_t i = 0; i < sizeof(begin) / sizeof(*begin); i++)
        if (!strncmp(k.name, begin[i], strlen(begin[i])))
            return true;
    return false;
}

/* A line for the call; where lines are wanted, one before it for each function that is inlined there. */
static void add_stack_frame(struct names *n, struct buf *b, struct code c)
{
    struct symbol_frames inner = {0};
    struct kernel_source *source = n->wanted.lines ? source_of(n) : NULL;
    bool known = source && kernel_source_frames(source, c.address - c.before, &inner);
    for (size_t i = 0; known && i + 1 < inner.len; i++) {
        buf_addstr(b, inner.at[i].function);
        add_line(n, b, &inner.at[i]);
        buf_addch(b, '\n');
    }
    add_symbol(n, b, c);
    if (known)
        add_line(n, b, &inner.at[inner.len - 1]);
    buf_addch(b, '\n');
}

void resolver_kernel_stack(struct sys_session *s, struct table *t, uint32_t column, int id)
{
    uint64_t frames[SYS_STACK_DEPTH];
    unsigned n = sys_stack_frames(s, id, frames), first = 0;
    struct buf b = BUF_INIT;
    while (first < n && resolver_kernel_is_bpf(s->names, frames[first]))
        first++;
    for (unsigned i = first; i < n; i++)
        add_stack_frame(s->names, &b, call(s->names, frames[i]));
    table_text(t, column, n ? buf_str(&b) : sys_stack_loss(id));
    buf_release(&b);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void resolver_add_user_frame(struct names *n, struct buf *b, const struct user_frame *f)
{
    const char *mark = f->trusted ? "" : "? ";
    char *module = mem_strdup(base_name(f->module.path));
    struct symbol_frames frames = {0};
    for (char *c = module; (c = strchr(c, '\n'));) /* a frame is a line */
        *c = '?';
    if (f->kind == USER_FRAME_FILE)
        symbols_resolve(symbols_of(n), &f->module, &f->address, 1, &frames);
    for (size_t i = 0; i < frames.len; i++)
        buf_printf(b, "%s%s (%s)\n", mark, frames.at[i].function, module);
    if (!frames.len && *module)
        buf_printf(b, "%s%s+0x%" PRIx64 "\n", mark, module, f->address);
    else if (!frames.len)
        buf_printf(b, "%s0x%" PRIx64 "\n", mark, f->address);
    free(module);
}

void resolver_user_stack(struct sys_session *s, struct table *t, uint32_t column, int id, uint32_t pid,
                         uint64_t time_ns)
{
    uint64_t pcs[SYS_STACK_DEPTH];
    struct user_frame frames[SYS_STACK_DEPTH];
    struct names *names = s->names;
    unsigned n = s->samples ? 0 : sys_stack_frames(s, id, pcs);
    struct buf b = BUF_INIT;
    if (!n) {
        table_text(t, column, s->samples ? stack_samples_text(s, id) : sys_stack_loss(id));
        return;
    }
    if (names->spaces) {
        address_spaces_drain(names->spaces);
        size_t trusted = user_stacks_find(names->users, (pid_t)pid, time_ns, pcs, n, frames, NULL);
        names->untrusted += n - trusted;
        for (size_t i = 0; i < trusted; i++)
            names->nameless += frames[i].kind == USER_FRAME_NOT_MAPPED;
    }
    for (unsigned i = 0; i < n; i++)
        if (names->spaces)
            resolver_add_user_frame(names, &b, &frames[i]);
        else
            buf_printf(&b, "0x%" PRIx64 "\n", pcs[i]);
    table_text(t, column, buf_str(&b));
    buf_release(&b);
}

void resolver_user(struct sys_session *s, struct table *t, uint32_t column, uint64_t address, uint32_t pid,
                   uint64_t time_ns)
{
    struct names *names = s->names;
    struct user_frame frame;
    struct buf b = BUF_INIT;
    if (!names->spaces) {
        resolver_kernel_code(s, t, column, address);
        return;
    }
    address_spaces_drain(names->spaces);
    user_stacks_find(names->users, (pid_t)pid, time_ns, &address, 1, &frame, NULL);
    resolver_add_user_frame(names, &b, &frame);
    char *line_end = strchr(buf_str(&b), '\n'); /* the innermost of inlined ones */
    if (line_end)
        *line_end = '\0';
    table_text(t, column, buf_str(&b));
    buf_release(&b);
}

void resolver_add_gfp(struct names *n, struct buf *b, uint64_t flags)
{
    if (!n->words_queried)
        gfp_words_read(&n->words);
    n->words_queried = true;
    gfp_format(&n->words.gfp, flags, b);
}

void resolver_gfp(struct sys_session *s, struct table *t, uint32_t column, uint64_t flags)
{
    struct buf b = BUF_INIT;
    resolver_add_gfp(s->names, &b, flags);
    table_text(t, column, buf_str(&b));
    buf_release(&b);
}

struct cgroups *resolver_cgroups(struct names *n)
{
    if (!n->cgroups)
        n->cgroups = cgroups_new();
    return n->cgroups;
}
