/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/unwind/stack_dump.h"

#include <string.h>

#define RED_ZONE 128u /* bytes below the stack pointer that an interrupted function may use (ABI) */

struct walk {
    const struct stack_dump *c;
    uint64_t regs[REG_COUNT];
    bool exact;
    enum stack_dump_end end;
    /* Of the frame that step() leaves: */
    const struct dso *file;
    struct cfi_row row;
    uint64_t lowest; /* the lowest address that its rules may read */
};

static bool is_missing(const struct stack_dump_run *r, uint64_t at)
{
    uint64_t page = at / STACK_DUMP_PAGE_BYTES - r->from / STACK_DUMP_PAGE_BYTES;
    return page > 31 || r->missing >> page & 1;
}

/* Reads a word of the copied memory. If it was not copied, returns false, and w->end has the reason. */
static bool read_word(void *arg, uint64_t at, uint64_t *value)
{
    struct walk *w = arg;
    w->end = STACK_DUMP_BROKEN;
    if (at < w->lowest || at + 8 < at)
        return false;
    w->end = STACK_DUMP_CUT;
    for (int i = 0; i < STACK_DUMP_RUNS; i++) {
        const struct stack_dump_run *r = &w->c->run[i];
        if (at < r->from || at - r->from > r->bytes || r->bytes - (at - r->from) < 8)
            continue;
        w->end = STACK_DUMP_UNREADABLE;
        if (is_missing(r, at) || is_missing(r, at + 7))
            return false;
        w->end = STACK_DUMP_WHOLE;
        memcpy(value, r->data + (at - r->from), 8);
        return true;
    }
    return false;
}

static bool broken(struct walk *w)
{
    w->end = STACK_DUMP_BROKEN;
    return false;
}

static bool evaluate(struct walk *w, int32_t block, const uint64_t *first, uint64_t *result)
{
    const struct expr_context ctx = {.regs = w->regs, .read = read_word, .memory = w};
    w->end = STACK_DUMP_WHOLE;
    if (dso_eval(w->file, block, &ctx, first, result))
        return true;
    return w->end != STACK_DUMP_WHOLE ? false : broken(w);
}

/* Computes the value of one register in the caller. Returns false, with the reason in w->end, if it is not known. */
static bool restore(struct walk *w, int slot, uint64_t cfa, uint64_t *value)
{
    int32_t rule = w->row.value[slot];
    uint64_t at = cfa + (uint64_t)(int64_t)rule;
    switch ((enum cfi_how)w->row.how[slot]) {
    case CFI_SAME:
    case CFI_UNDEFINED:
        *value = w->regs[regs_of_slot(slot)];
        return true;
    case CFI_IS:
        *value = at;
        return true;
    case CFI_REGISTER:
        if (rule < 0 || rule >= REG_COUNT)
            return broken(w);
        *value = w->regs[rule];
        return true;
    case CFI_IS_EXPR:
        return evaluate(w, rule, &cfa, value);
    case CFI_AT_EXPR:
        return evaluate(w, rule, &cfa, &at) && read_word(w, at, value);
    case CFI_AT:
        break;
    }
    return read_word(w, at, value);
}

/* Computes the canonical frame address: the caller's stack pointer. Returns false, with the reason in w->end. */
static bool find_cfa(struct walk *w, uint64_t *cfa)
{
    if (w->row.cfa_expr) {
        if (!evaluate(w, w->row.cfa_expr, NULL, cfa))
            return false;
    } else if (w->row.cfa_register < REG_COUNT) {
        *cfa = w->regs[w->row.cfa_register] + (uint64_t)(int64_t)w->row.cfa_offset;
    } else {
        return broken(w);
    }
    /* Stacks grow down, so the caller's stack pointer is higher, unless a signal frame leads to another stack. */
    return *cfa > w->regs[REG_RSP] || w->row.signal_frame || broken(w);
}

static bool leave_frame(struct walk *w)
{
    uint64_t cfa, next[SLOT_COUNT];
    if (!find_cfa(w, &cfa))
        return false;
    for (int i = 0; i < SLOT_COUNT; i++)
        if (!restore(w, i, cfa, &next[i]))
            return false;
    if (w->row.how[SLOT_RSP] == CFI_SAME)
        next[SLOT_RSP] = cfa;
    for (int i = 0; i < SLOT_COUNT; i++)
        w->regs[regs_of_slot(i)] = next[i];
    w->exact = w->row.signal_frame;
    return true;
}

/* Steps from a signal frame to the interrupted code: the kernel wrote the registers of that code into the frame. */
static bool leave_signal(struct walk *w)
{
    uint64_t gregs[17];
    for (unsigned i = 0; i < sizeof(gregs) / sizeof(*gregs); i++)
        if (!read_word(w, w->regs[REG_RSP] + SIGFRAME_GREG(i), &gregs[i]))
            return false;
    regs_from_sigframe(w->regs, gregs);
    w->exact = true;
    return true;
}

/* Returns whether the stack holds nothing but the program's arguments. The code is then the first instructions of the
 * process, in the loader: they have no rules, and no caller. */
static bool is_first_code(const struct walk *w)
{
    return w->c->arguments - w->regs[REG_RSP] < 16;
}

/* Steps to the caller. Returns false at the end: after the outermost frame w->end is STACK_DUMP_WHOLE, else the reason
 * why the caller is not known. */
static bool step(struct walk *w, struct stack_dump_code (*find)(void *arg, uint64_t pc), void *arg,
                 struct stack_dump_frame *frame)
{
    uint64_t pc = w->regs[REG_RA];
    struct stack_dump_code code = find(arg, w->exact ? pc : pc - 1);
    w->end = STACK_DUMP_NO_FILE;
    if (!code.file)
        return false;
    w->file = code.file;
    w->lowest = w->regs[REG_RSP] - (w->exact ? RED_ZONE : 0);
    if (dso_is_sigreturn(code.file, code.address + !w->exact)) {
        frame->exact = true; /* its pc is no return address: it is where the handler returns to */
        return leave_signal(w);
    }
    bool ruled = dso_row(code.file, code.address, w->exact, &w->row);
    w->end = ruled || is_first_code(w) ? STACK_DUMP_WHOLE : STACK_DUMP_NO_RULES;
    return ruled && w->row.how[SLOT_RA] != CFI_UNDEFINED && leave_frame(w);
}

size_t stack_dump_walk(const struct stack_dump *c, struct stack_dump_code (*find)(void *arg, uint64_t pc),
                       void *arg, struct stack_dump_frame *out, size_t max, enum stack_dump_end *end)
{
    struct walk w = {.c = c, .exact = true};
    size_t n = 0;
    memcpy(w.regs, c->regs, sizeof(w.regs));
    while (w.end == STACK_DUMP_WHOLE && w.regs[REG_RA]) {
        if (n == max) {
            w.end = STACK_DUMP_DEEP;
            break;
        }
        out[n] = (struct stack_dump_frame){w.regs[REG_RA], w.exact};
        if (!step(&w, find, arg, &out[n++]))
            break;
    }
    *end = w.end;
    return n;
}
