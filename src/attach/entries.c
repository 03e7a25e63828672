/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/entries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/x86/x86_move.h"

#define FUNCTION_MOST  65536u
#define STACK_MOST     (8u << 20)
#define PAGE           4096u
#define FUNCTION_GUESS 64u /* bytes, of a function whose size is not known */

static const char *const names[ATTACH_COUNT] = {
#define X(name) #name,
    ATTACH_FUNCTIONS(X)
#undef X
};

/* Functions that free come first: no sampled object is freed unseen. */
static const enum attach_function order[ATTACH_COUNT] = {
    ATTACH_free,          ATTACH_realloc,  ATTACH_malloc, ATTACH_calloc,  ATTACH_posix_memalign,
    ATTACH_aligned_alloc, ATTACH_memalign, ATTACH_valloc, ATTACH_pvalloc,
};

/* The library whose malloc() the program uses: one that replaces the C library's, if there is any. */
static const struct target_module *find_allocator(struct target *t)
{
    static const char *const known[] = {"libjemalloc", "libtcmalloc", "libmimalloc", "libc.so."};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const struct target_module *m = target_module(t, known[i]);
        if (m && target_symbol(m, "malloc", NULL) && target_symbol(m, "free", NULL))
            return m;
    }
    return NULL;
}

static bool is_shared(const struct entries *n, int k)
{
    for (int i = 0; i < ATTACH_COUNT; i++)
        if (i != k && n->at[i].at && n->at[i].at == n->at[k].at)
            return true;
    return false;
}

/* The file has what the memory must have: else somebody else has changed it. */
static bool is_as_in_the_file(const struct target_module *m, uint64_t at, const uint8_t *bytes, size_t length)
{
    const struct probe_code *code = probe_file_code(&m->elf, at - m->bias);
    return code && code->high - (at - m->bias) >= length &&
           !memcmp(code->bytes + (at - m->bias - code->low), bytes, length);
}

static int prepare(struct target *t, const struct target_module *m, const struct target_module *agent, int k,
                   struct entries *n, struct error *e)
{
    static uint8_t bytes[FUNCTION_MOST];
    struct attach_entry *entry = &n->at[k];
    struct x86_moved moved;
    uint64_t length = 0;
    const uint64_t function = target_symbol(m, names[k], &length),
                   hook = target_symbol(agent, names[k], NULL),
                   code = target_symbol(agent, "allium_attach_code", NULL) + (uint64_t)k * ATTACH_CODE_BYTES;
    if (!function || !hook)
        return 0;
    length = !length ? FUNCTION_GUESS : length < sizeof(bytes) ? length : sizeof(bytes);
    if (!target_read(t, function, bytes, length))
        return error_set(e, EIO, "cannot read %s() of %s", names[k], n->library);
    if (!is_as_in_the_file(m, function, bytes, length))
        return error_set(e, EBUSY,
                         "%s() of %s is not as in the file: a debugger, a uprobe or another hook is there",
                         names[k], n->library);
    const struct x86_function f = {bytes, length, function};
    const int bad = x86_move(&f, code, n->code[k], ATTACH_CODE_BYTES, &moved);
    if (bad)
        return error_set(e, -bad, "%s() of %s cannot be replaced: %s", names[k], n->library,
                         bad == -ERANGE ? "the agent is too far away"
                                        : "its first instructions cannot be moved");
    *entry = (struct attach_entry){.at = function + moved.skipped, .code = code, .bytes = moved.taken};
    memcpy(entry->original, bytes + moved.skipped, moved.taken);
    if (is_shared(n, k)) { /* memalign and aligned_alloc of glibc: one patch */
        *entry = (struct attach_entry){.at = 0};
        return 0;
    }
    if (entry->at / PAGE != (entry->at + X86_JUMP_BYTES - 1) / PAGE)
        return error_set(
            e, EINVAL,
            "the first instructions of %s() of %s lie on two pages, and cannot be replaced in one step",
            names[k], n->library);
    n->functions++;
    return x86_jump(entry->at, hook, n->jump[k])
               ? error_set(e, ERANGE, "the agent is too far from %s", n->library)
               : 0;
}

int entries_find(struct target *t, const struct target_module *agent, struct entries *out, struct error *e)
{
    const struct target_module *m = find_allocator(t);
    *out = (struct entries){.functions = 0};
    if (!m)
        return error_set(e, ENOENT, "process %d has no allocator that can be observed", (int)t->pid);
    snprintf(out->library, sizeof(out->library), "%s", target_module_name(m));
    for (int k = 0; k < ATTACH_COUNT; k++) {
        const int bad = prepare(t, m, agent, k, out, e);
        if (bad)
            return bad;
    }
    return 0;
}

static bool is_inside(const struct attach_entry *at, uint64_t address)
{
    for (int k = 0; k < ATTACH_COUNT; k++)
        if (at[k].at && address > at[k].at && address < at[k].at + at[k].bytes)
            return true;
    return false;
}

bool entries_are_free(const struct target *t, const struct stopped *s, const struct attach_entry *at)
{
    bool free_of_all = true;
    vec_each (const struct stopped_thread, thread, &s->threads) {
        const struct space_mapping *stack = target_mapping(t, thread->regs.rsp);
        if (is_inside(at, thread->regs.rip))
            return false;
        if (!stack)
            return false; /* the mappings are read anew */
        const uint64_t from = (thread->regs.rsp - 128) & ~7ull;
        size_t bytes = stack->end - from < STACK_MOST ? stack->end - from : STACK_MOST;
        uint64_t *words = mem_alloc(bytes);
        free_of_all = target_read(t, from, words, bytes);
        for (size_t i = 0; free_of_all && i < bytes / sizeof(*words); i++)
            free_of_all = !is_inside(at, words[i]);
        free(words);
        if (!free_of_all)
            return false;
    }
    return free_of_all;
}

void entries_look(const struct target *t, struct attach_entry *at)
{
    uint8_t now[X86_JUMP_BYTES];
    for (int k = 0; k < ATTACH_COUNT; k++)
        at[k].is_patched = at[k].at && target_read(t, at[k].at, now, sizeof(now)) &&
                           memcmp(now, at[k].original, sizeof(now)) != 0;
}

int entries_restore(const struct target *t, struct attach_entry *at)
{
    int n = 0;
    for (int i = ATTACH_COUNT - 1; i >= 0; i--) {
        struct attach_entry *entry = &at[order[i]];
        if (!entry->at || !entry->is_patched)
            continue;
        if (entry->bytes > sizeof(entry->original) ||
            !target_write(t, entry->at, entry->original, X86_JUMP_BYTES))
            return -EIO;
        entry->is_patched = 0;
        n++;
    }
    return n;
}

int entries_patch(const struct target *t, struct entries *n)
{
    for (int i = 0; i < ATTACH_COUNT; i++) {
        struct attach_entry *entry = &n->at[order[i]];
        if (!entry->at)
            continue;
        if (!target_write(t, entry->at, n->jump[order[i]], X86_JUMP_BYTES)) {
            entries_restore(t, n->at);
            return -EIO;
        }
        entry->is_patched = 1;
    }
    return 0;
}
