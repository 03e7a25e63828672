/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/probe/static_probe.h"

#include <string.h>

/* In the order of struct user_regs_struct; each with its lower parts of 8, 4, 2 and 1 bytes. */
static const char *const registers[][4] = {
    {"r15", "r15d", "r15w", "r15b"}, {"r14", "r14d", "r14w", "r14b"}, {"r13", "r13d", "r13w", "r13b"},
    {"r12", "r12d", "r12w", "r12b"}, {"rbp", "ebp", "bp", "bpl"},     {"rbx", "ebx", "bx", "bl"},
    {"r11", "r11d", "r11w", "r11b"}, {"r10", "r10d", "r10w", "r10b"}, {"r9", "r9d", "r9w", "r9b"},
    {"r8", "r8d", "r8w", "r8b"},     {"rax", "eax", "ax", "al"},      {"rcx", "ecx", "cx", "cl"},
    {"rdx", "edx", "dx", "dl"},      {"rsi", "esi", "si", "sil"},     {"rdi", "edi", "di", "dil"},
    {NULL, NULL, NULL, NULL},        {NULL, NULL, NULL, NULL},        {NULL, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL},        {"rsp", "esp", "sp", "spl"},
};
#define N_REGISTERS (sizeof(registers) / sizeof(*registers))

struct text {
    const char *at;
};

/* Sets *reg. False: no known register is there. */
static bool take_register(struct text *t, int *reg)
{
    if (*t->at != '%')
        return false;
    const size_t len = strcspn(t->at + 1, " ,)");
    for (size_t i = 0; i < N_REGISTERS; i++)
        for (int part = 0; part < 4; part++) {
            const char *name = registers[i][part];
            if (name && strlen(name) == len && !memcmp(name, t->at + 1, len)) {
                *reg = (int)i;
                t->at += 1 + len;
                return true;
            }
        }
    return false;
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : 99;
}

/* Adds a number with its sign to *value. Returns false if there is none. */
static bool take_number(struct text *t, int64_t *value)
{
    const bool negative = *t->at == '-';
    const char *at = t->at + (negative || *t->at == '+');
    const int base = at[0] == '0' && at[1] == 'x' ? 16 : 10;
    uint64_t n = 0;
    at += base == 16 ? 2 : 0;
    if (digit_of(*at) >= base)
        return false;
    for (; digit_of(*at) < base; at++)
        n = n * (unsigned)base + (unsigned)digit_of(*at);
    *value = (int64_t)((uint64_t)*value + (negative ? 0 - n : n));
    t->at = at;
    return true;
}

/* "16+8(%rax,%rcx,4)" */
static bool take_memory(struct text *t, struct static_operand *o)
{
    int64_t scale = 0;
    o->place = STATIC_MEMORY;
    while (*t->at == '+' || *t->at == '-' || digit_of(*t->at) < 10)
        if (!take_number(t, &o->value))
            return false;
    if (*t->at++ != '(')
        return false;
    if (*t->at != ',' && !take_register(t, &o->base))
        return false;
    if (*t->at == ',') {
        t->at++;
        if (!take_register(t, &o->index))
            return false;
        o->scale = 1;
        if (*t->at == ',') {
            t->at++;
            if (!take_number(t, &scale) || (scale != 1 && scale != 2 && scale != 4 && scale != 8))
                return false;
            o->scale = (uint8_t)scale;
        }
    }
    return *t->at++ == ')';
}

/* "-4@%edi" */
static bool take_operand(struct text *t, struct static_operand *o)
{
    int64_t bytes = 0;
    *o = (struct static_operand){.base = STATIC_NO_REGISTER, .index = STATIC_NO_REGISTER};
    o->is_signed = *t->at == '-';
    if (!take_number(t, &bytes) || *t->at++ != '@')
        return false;
    bytes = o->is_signed ? (int64_t)(0 - (uint64_t)bytes) : bytes;
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
        return false;
    o->bytes = (uint8_t)bytes;
    if (*t->at == '$') {
        t->at++;
        o->place = STATIC_CONSTANT;
        return take_number(t, &o->value);
    }
    if (*t->at == '%') {
        o->place = STATIC_REGISTER;
        return take_register(t, &o->base);
    }
    return take_memory(t, o);
}

int static_operands_parse(const char *text, struct static_operand out[static STATIC_PROBE_OPERANDS],
                          const char **bad, size_t *bad_len)
{
    struct text t = {text};
    unsigned n = 0;
    for (;; n++) {
        t.at += strspn(t.at, " ");
        *bad = t.at;
        *bad_len = strcspn(t.at, " ");
        if (!*t.at)
            return (int)n;
        if (n == STATIC_PROBE_OPERANDS || !take_operand(&t, &out[n]) || (*t.at && *t.at != ' '))
            return -1;
    }
}
