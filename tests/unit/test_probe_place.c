/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a uprobe is put, and where a static probe has its values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "symbol/probe/probe_place.h"
#include "symbol/probe/static_probe.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* The function is the whole text, in hexadecimal. */
static size_t take(const char *text, uint8_t *code)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = 0;
    for (; *text; text += *text == ' ')
        for (; *text && *text != ' '; text += 2)
            code[n++] =
                (uint8_t)((strchr(digits, text[0]) - digits) * 16 + (strchr(digits, text[1]) - digits));
    return n;
}

static const struct {
    const char *what, *code;
    uint64_t after;
    const char *instruction;
} cases[] = {
    {"push at the entry", "55 4889e5 c3", 0, "push"},
    {"push of a high register", "4157 415f c3", 0, "push"},
    {"a nop of one byte", "90 c3", 0, "nop"},
    {"behind endbr64", "f30f1efa 53 5b c3", 4, "push"},
    {"behind endbr64 and a move of an argument", "f30f1efa 4889f8 53 5b c3", 7, "push"},
    {"behind a nop of five bytes", "0f1f440000 55 5d c3", 5, "push"},
    {"behind a test: the jump", "4885ff 7402 c3 c3", 3, "jump"},
    {"behind a comparison with a constant, a long jump", "4883ff10 0f8400000000 c3", 4, "jump"},
    {"behind a load and xor", "488b0511223344 31db 53 c3", 9, "push"},
    {"behind lea with an index", "488d84f711223344 53 c3", 8, "push"},
    {"behind a constant", "b801000000 53 c3", 5, "push"},
    {"rdi changes", "4889f7 53 c3", 0, "stepped"},
    {"r8 changes", "4989f8 53 c3", 0, "stepped"},
    {"rsp changes", "4883ec08 53 c3", 0, "stepped"},
    {"rsp changes by lea", "488d6424f8 53 c3", 0, "stepped"},
    {"esi is zeroed", "31f6 53 c3", 0, "stepped"},
    {"rcx is loaded", "488b0f 53 c3", 0, "stepped"},
    {"memory is written", "488907 53 c3", 0, "stepped"},
    {"edi becomes a constant", "bf01000000 53 c3", 0, "stepped"},
    {"an unknown instruction", "0fa2 53 c3", 0, "stepped"},
    {"a loop to the place", "4889f8 53 5b ffc8 75fa c3", 0, "stepped"},
    {"a loop behind the place", "4889f8 53 5b ffc8 75fb c3", 3, "push"},
    {"it ends before anything is cheap", "4889f8", 0, "stepped"},
    {"half an instruction", "488b", 0, "stepped"},
};

static void the_cheapest_place_keeps_arguments(void **state)
{
    (void)state;
    for (size_t i = 0; i < N(cases); i++) {
        uint8_t code[64];
        const size_t bytes = take(cases[i].code, code);
        const struct probe_place p = probe_place_choose(code, bytes, 0, bytes);
        if (p.after != cases[i].after || strcmp(p.instruction, cases[i].instruction) != 0)
            fail_msg("%s: +%u %s, not +%u %s", cases[i].what, (unsigned)p.after, p.instruction,
                     (unsigned)cases[i].after, cases[i].instruction);
    }
}

static void a_jump_from_other_code_counts(void **state)
{
    (void)state;
    uint8_t code[64];
    const size_t bytes = take("4889f8 53 5b c3 e9f8ffffff", code); /* to +3 */
    assert_string_equal(probe_place_choose(code, bytes, 0, 6).instruction, "stepped");
    code[7]++; /* to +4 */
    assert_int_equal(probe_place_choose(code, bytes, 0, 6).after, 3);
}

static void five_bytes_are_unsafe(void **state)
{
    (void)state;
    static const uint8_t five[] = {0x0f, 0x1f, 0x44, 0, 0}, four[] = {0x0f, 0x1f, 0x40, 0, 0}, one[] = {0x90};
    assert_true(probe_place_is_unsafe(five, sizeof(five)));
    assert_false(probe_place_is_unsafe(four, sizeof(four)));
    assert_false(probe_place_is_unsafe(one, sizeof(one)));
}

enum { RBP = 4, RAX = 10, RCX = 11, RDI = 14, RSP = 19 };

static const struct {
    const char *text;
    struct static_operand want;
} operands[] = {
    {"-4@%edi", {STATIC_REGISTER, 0, RDI, -1, 0, 4, true}},
    {"1@%cl", {STATIC_REGISTER, 0, RCX, -1, 0, 1, false}},
    {"8@$-5", {STATIC_CONSTANT, -5, -1, -1, 0, 8, false}},
    {"4@$0xff", {STATIC_CONSTANT, 255, -1, -1, 0, 4, false}},
    {"8@-1204(%rbp)", {STATIC_MEMORY, -1204, RBP, -1, 0, 8, false}},
    {"-2@(%rsp)", {STATIC_MEMORY, 0, RSP, -1, 0, 2, true}},
    {"8@16+8(%rax,%rcx,4)", {STATIC_MEMORY, 24, RAX, RCX, 4, 8, false}},
    {"8@(%rax,%rcx)", {STATIC_MEMORY, 0, RAX, RCX, 1, 8, false}},
    {"8@(,%rcx,8)", {STATIC_MEMORY, 0, -1, RCX, 8, 8, false}},
};

static void operands_are_read(void **state)
{
    (void)state;
    struct static_operand found[STATIC_PROBE_OPERANDS];
    const char *bad;
    size_t len;
    for (size_t i = 0; i < N(operands); i++) {
        if (static_operands_parse(operands[i].text, found, &bad, &len) != 1)
            fail_msg("%s is not read", operands[i].text);
        const struct static_operand *f = &found[0], *w = &operands[i].want;
        if (f->place != w->place || f->value != w->value || f->base != w->base || f->index != w->index ||
            f->scale != w->scale || f->bytes != w->bytes || f->is_signed != w->is_signed)
            fail_msg("%s is read wrongly", operands[i].text);
    }
    assert_int_equal(static_operands_parse("", found, &bad, &len), 0);
    assert_int_equal(static_operands_parse(" 8@%rax  -4@$1 ", found, &bad, &len), 2);
}

static void unknown_operands_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "8f@%xmm0", "8@%rip", "1@%ah",         "3@%eax",          "8@",  "8@name(%rip)", "8@name",
        "%rax",     "8@$",    "8@(%rax",       "8@(%rax,%rcx,3)", "8@8", "8@%raxx",      "8@(%rax))",
        "@%rax",    "8@8(,)", "8@%rax,4@%rcx",
    };
    struct static_operand found[STATIC_PROBE_OPERANDS];
    const char *bad;
    size_t len;
    for (size_t i = 0; i < N(texts); i++)
        if (static_operands_parse(texts[i], found, &bad, &len) != -1 || bad != texts[i] ||
            len != strlen(texts[i]))
            fail_msg("%s is not refused", texts[i]);
    assert_int_equal(static_operands_parse("8@%rax 8f@%xmm1 8@%rcx", found, &bad, &len), -1);
    assert_int_equal(len, strlen("8f@%xmm1"));
    assert_int_equal(
        static_operands_parse("1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$1 1@$13", found,
                              &bad, &len),
        -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cheapest_place_keeps_arguments),
        cmocka_unit_test(a_jump_from_other_code_counts),
        cmocka_unit_test(five_bytes_are_unsafe),
        cmocka_unit_test(operands_are_read),
        cmocka_unit_test(unknown_operands_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
