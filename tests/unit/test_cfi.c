/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwind rules that compilers do not write, so that test_step.c does not meet them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unwind/cfi.h"
#include "unwind/dwarf.h"
#include "unwind/rule_compile.h"

/* .eh_frame_hdr and .eh_frame for one function of 16 bytes, as hand-written assembly may have them: no augmentation. */
static struct {
    uint8_t version, frame_encoding, count_encoding, table_encoding;
    int32_t frame;
    uint32_t count;
    int32_t table[2];
    struct {
        uint32_t bytes, id;
        uint8_t version, augmentation, code_align, data_align, return_register, program[11];
    } __attribute__((packed)) cie;
    struct {
        uint32_t bytes, cie_pointer;
        uint64_t start, length;
        uint8_t program[4];
    } __attribute__((packed)) fde;
    uint8_t code[16];
} __attribute__((packed)) plain_rules = {
    .version = 1,
    .frame_encoding = 0x1b, /* DW_EH_PE_pcrel | sdata4 */
    .count_encoding = 0x03, /* udata4 */
    .table_encoding = 0x3b, /* datarel | sdata4 */
    .count = 1,
    .cie = {.bytes = 20,
            .version = 1,
            .code_align = 1,
            .data_align = 0x78, /* -8 */
            .return_register = 16,
            .program = {DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1}},
    .fde = {.bytes = 24, .length = 16, .program = {DW_CFA_def_cfa_offset, 32}},
};

static void rules_without_augmentation_are_read_from_their_first_byte(void **state)
{
    (void)state;
    uintptr_t start = (uintptr_t)&plain_rules;
    plain_rules.frame = (int32_t)((uintptr_t)&plain_rules.cie - (uintptr_t)&plain_rules.frame);
    plain_rules.table[0] = (int32_t)((uintptr_t)plain_rules.code - start);
    plain_rules.table[1] = (int32_t)((uintptr_t)&plain_rules.fde - start);
    plain_rules.fde.cie_pointer =
        (uint32_t)((uintptr_t)&plain_rules.fde.cie_pointer - (uintptr_t)&plain_rules.cie);
    plain_rules.fde.start = (uintptr_t)plain_rules.code;
    struct unwind_module m = {.start = start,
                              .end = start + sizeof(plain_rules),
                              .eh_frame_hdr = (const uint8_t *)&plain_rules,
                              .rules_start = start,
                              .rules_end = start + sizeof(plain_rules)};
    struct cfi_row row;
    assert_true(cfi_find(&m, (uintptr_t)plain_rules.code + 4, false, &row));
    assert_int_equal(row.cfa_register, 7);
    assert_int_equal(row.cfa_offset, 32);
    assert_int_equal(row.how[SLOT_RA], CFI_AT);
    assert_int_equal(row.value[SLOT_RA], -8);
}

/* `rbp + 8192` as an expression is no rule by rsp, though rbp is as far from 0 as the two values of rsp are apart. */
static void cfa_by_rbp_is_not_taken_for_one_by_rsp(void **state)
{
    static const uint8_t rules[] = {0, 4, 0x76, 0x80, 0xc0, 0x00, 0, 0}; /* DW_OP_breg6 8192 at offset 1 */
    (void)state;
    uintptr_t start = (uintptr_t)rules;
    struct unwind_module m = {
        .start = start, .end = start + sizeof(rules), .rules_end = start + sizeof(rules)};
    struct cfi_row row = {.cfa_expr = 1};
    row.how[SLOT_RA] = CFI_AT;
    row.value[SLOT_RA] = -8;
    assert_int_equal(rule_compile_row(&m, &row, start).kind, RULE_GENERAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_without_augmentation_are_read_from_their_first_byte),
        cmocka_unit_test(cfa_by_rbp_is_not_taken_for_one_by_rsp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
