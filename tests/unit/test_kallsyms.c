/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/symbol/kallsyms and kernel: the table of the kernel's symbols, and how it is followed.
 */
#include "test_kernel.h"

#include "symbol/kallsyms.h"
#include "symbol/kernel_symbols.h"

#include <errno.h>
#include <time.h>

static const char symbols[] = "0000000000000000 A fixed_percpu_data\n"
                              "ffffffff81000000 T startup_64\n"
                              "ffffffff81000000 T _stext\n"
                              "ffffffff81000000 T _text\n"
                              "ffffffff81000100 t __pfx_do_one\n"
                              "ffffffff81000110 t do_one\n"
                              "ffffffff81000200 t do_one.part.0\n"
                              "ffffffff81000300 T __memset\n"
                              "ffffffff81000300 W memset\n"
                              "ffffffff81000300 T __pi_memset\n"
                              "ffffffff81000400 t local_twin\n"
                              "ffffffff81000400 T global_twin_of_it\n"
                              "ffffffff81000500 T __traceiter_x\n"
                              "ffffffff81000500 t folded\n"
                              "ffffffff81000600 T _etext\n"
                              "ffffffff81800000 d data_of_it\n"
                              "ffffffff81900000 T _sinittext\n"
                              "ffffffff81900000 t __init_one\n"
                              "ffffffff81900080 T _einittext\n"
                              "ffffffffc0300000 t second_begins\t[second]\n"
                              "ffffffffc0200000 t first_begins\t[first]\n"
                              "ffffffffc0200800 t first_ends\t[first]\n"
                              "ffffffffc0201000 b first_data\t[first]\n"
                              "ffffffffc0100040 t bpf_prog_6deef7357e7b4530_one\t[bpf]\n"
                              "ffffffffc0000000 t ftrace_trampoline\t[__builtin__ftrace]\n";
static const char modules[] = "second 4096 0 - Live 0xffffffffc0300000\n"
                              "first 16384 2 second,other, Live 0xffffffffc0200000 (OE)\n";

static void assert_finds(const struct kallsyms *k, uint64_t address, const char *name, const char *module)
{
    size_t at = kallsyms_find(k, address);
    if (!name) {
        assert_int_equal(at, KALLSYMS_NONE);
        return;
    }
    assert_int_not_equal(at, KALLSYMS_NONE);
    assert_string_equal(kallsyms_name(k, at), name);
    assert_string_equal(kallsyms_module_name(k, at), module);
}

static void frames_find_their_function(void **state)
{
    (void)state;
    struct kallsyms k;
    kallsyms_parse(&k, symbols, modules);
    /* interrupted at the beginning, behind padding */
    assert_finds(&k, kallsyms_byte_of_frame(&k, 0xffffffff81000110), "do_one", "");
    /* a call, in the middle or at the end of its function, the next one of which has no padding */
    assert_finds(&k, kallsyms_byte_of_frame(&k, 0xffffffff81000115), "do_one", "");
    assert_finds(&k, kallsyms_byte_of_frame(&k, 0xffffffff81000200), "do_one", "");
    assert_int_equal(kallsyms_byte_of_frame(&k, 0xffffffff81000200), 0xffffffff810001ff);
    /* a call at the end of its function, before padding */
    assert_finds(&k, kallsyms_byte_of_frame(&k, 0xffffffff81000100), "startup_64", "");
    /* within the padding is no frame */
    assert_int_equal(kallsyms_byte_of_frame(&k, 0xffffffff81000108), 0xffffffff81000107);
    assert_finds(&k, kallsyms_byte_of_frame(&k, 1), NULL, NULL);
    assert_string_equal(kallsyms_without_mark("__pfx_do_one"), "do_one");
    assert_string_equal(kallsyms_without_mark("__pfx_"), "__pfx_");
    kallsyms_release(&k);
}

static void addresses_find_their_symbol(void **state)
{
    (void)state;
    static const struct {
        uint64_t address;
        const char *name, *module;
    } cases[] = {
        {0, NULL, NULL},
        {0xffffffff80ffffff, NULL, NULL},
        {0xffffffff81000000, "startup_64", ""},
        {0xffffffff810000ff, "startup_64", ""},
        {0xffffffff81000105, "__pfx_do_one", ""},
        {0xffffffff81000110, "do_one", ""},
        {0xffffffff81000201, "do_one.part.0", ""},
        {0xffffffff810005ff, "folded", ""},
        {0xffffffff81000600, NULL, NULL}, /* _etext */
        {0xffffffff81800010, NULL, NULL}, /* data */
        {0xffffffff81900000, "__init_one", ""},
        {0xffffffff81900080, NULL, NULL}, /* _einittext */
        {0xffffffffc00fffff, "ftrace_trampoline", "__builtin__ftrace"},
        {0xffffffffc0100050, "bpf_prog_6deef7357e7b4530_one", "bpf"},
        {0xffffffffc01fffff, "bpf_prog_6deef7357e7b4530_one", "bpf"},
        {0xffffffffc02007ff, "first_begins", "first"},
        {0xffffffffc0200fff, "first_ends", "first"},
        {0xffffffffc0201000, NULL, NULL}, /* the module's data */
        {0xffffffffc0300fff, "second_begins", "second"},
        {0xffffffffc0301000, NULL, NULL}, /* beyond its size */
        {UINT64_MAX, NULL, NULL},
    };
    struct kallsyms k;
    kallsyms_parse(&k, symbols, modules);
    assert_int_equal(k.lines, 25);
    assert_int_equal(k.bad_lines, 0);
    assert_int_equal(k.stext, 0xffffffff81000000);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_finds(&k, cases[i].address, cases[i].name, cases[i].module);
    kallsyms_release(&k);
    kallsyms_parse(&k, "ffffffffc0100040 t bpf_prog_1_a\t[bpf]\n", "");
    assert_finds(&k, 0xffffffffc01fffff, "bpf_prog_1_a", "bpf");
    assert_finds(&k, 0xffffffffc0200000, NULL, NULL); /* another pack */
    kallsyms_release(&k);
}

static void of_several_names_the_best_is_chosen(void **state)
{
    (void)state;
    struct kallsyms k;
    kallsyms_parse(&k, symbols, modules);
    assert_finds(&k, 0xffffffff81000300, "memset", "");
    assert_finds(&k, 0xffffffff81000400, "global_twin_of_it", "");
    assert_finds(&k, 0xffffffff81000500, "folded", "");
    kallsyms_release(&k);
    /* In any order of the lines. */
    kallsyms_parse(
        &k,
        "ffffffff81000000 t aa_long\nffffffff81000000 t bb\nffffffff81000000 t aa\n"
        "ffffffff81000010 T __ia32_sys_fork\nffffffff81000010 T __x64_sys_fork\nffffffff81000010 t "
        "__do_sys_fork\nffffffff81000020 T __softirq_text_start\nffffffff81000020 t ___f\n",
        "");
    assert_finds(&k, 0xffffffff81000000, "aa", "");
    assert_finds(&k, 0xffffffff81000010, "__x64_sys_fork", "");
    assert_finds(&k, 0xffffffff81000020, "___f", "");
    kallsyms_release(&k);
}

static void bad_lines_are_passed_over(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "",
        "T x",
        "ffffffff8100000g T x",
        "ffffffff810000000 T x",
        "ffffffff81000010",
        " T x",
        "ffffffff81000010 ",
        "ffffffff81000010 T",
        "ffffffff81000010 T ",
        "ffffffff81000010 Tx",
        "ffffffff81000010 T a\x1b[2J",
        "ffffffff81000010 T a\t[",
        "ffffffff81000010 T a\t[]",
        "ffffffff81000010 T a\t[x\x01]",
        "ffffffff81000010 T a\t[x",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        char text[256];
        struct kallsyms k;
        snprintf(text, sizeof(text), "ffffffff81000000 T before\n%s\nffffffff81000020 T after\n", lines[i]);
        kallsyms_parse(&k, text, "\n \nx\nx 1\nbefore x 0x\n");
        assert_int_equal(k.bad_lines, 1);
        assert_int_equal(k.all.len, 2);
        assert_finds(&k, 0xffffffff81000010, "before", "");
        kallsyms_release(&k);
    }
    struct buf text = BUF_INIT;
    struct kallsyms k;
    buf_addstr(&text, "ffffffff81000000 T ");
    for (int i = 0; i < KALLSYMS_NAME_MAX; i++)
        buf_addch(&text, 'x');
    kallsyms_parse(&k, text.data, "");
    assert_int_equal(k.all.len, 1);
    kallsyms_release(&k);
    buf_addch(&text, 'x');
    kallsyms_parse(&k, text.data, "");
    assert_int_equal(k.bad_lines, 1);
    kallsyms_release(&k);
    buf_release(&text);
}

static void what_is_gone_keeps_its_name(void **state)
{
    (void)state;
    struct kallsyms before, now;
    kallsyms_parse(&before, symbols, modules);
    kallsyms_parse(&now,
                   "ffffffff81000000 T startup_64\nffffffff81000600 T _etext\n"
                   "ffffffffc0100040 t bpf_prog_2_two\t[bpf]\nffffffffc0100140 t bpf_prog_3_three\t[bpf]\n",
                   "");
    kallsyms_inherit(&now, &before);
    assert_finds(&now, 0xffffffffc0100050, "bpf_prog_2_two", "bpf"); /* took its place */
    assert_finds(&now, 0xffffffffc0200800, "first_ends", "first");
    assert_true(now.all.at[kallsyms_find(&now, 0xffffffffc0200800)].gone);
    assert_finds(&now, 0xffffffffc0301000, NULL, NULL);       /* as far as it went */
    assert_finds(&now, 0xffffffff81000110, "startup_64", ""); /* the kernel itself is as it says now */
    struct kallsyms later;
    kallsyms_parse(&later, symbols, modules);
    kallsyms_inherit(&later, &now);
    assert_false(later.all.at[kallsyms_find(&later, 0xffffffffc0200800)].gone);
    assert_finds(&later, 0xffffffffc0100141, "bpf_prog_3_three", "bpf");
    kallsyms_release(&later);
    kallsyms_release(&before);
    kallsyms_release(&now);
}

/* ---- following ---- */

static struct kernel_symbols *open_root(const char *root)
{
    struct kernel_symbols *k;
    struct error e = {""};
    assert_int_equal(kernel_symbols_new(root, &k, &e), 0);
    return k;
}

static void a_second(void)
{
    nanosleep(&(struct timespec){1, 50000000}, NULL);
}

static void names_are_for_grouping(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"__pfx_do_one", "do_one"},
        {"do_one.part.0", "do_one"},
        {"do_one.isra.0.cold", "do_one"},
        {"do_one.constprop.12", "do_one"},
        {"do_one.llvm.1234567890", "do_one"},
        {"__pfx_do_one.part.0", "do_one"},
        {"__pfx_", "__pfx_"},
        {"__x64_sys_read", "__x64_sys_read"},
        {"_RNvNtCsdaxkr9_6kernel5print11call_printk", "kernel::print::call_printk"},
    };
    char *root = make_root();
    put(root, "proc/kallsyms", symbols);
    struct kernel_symbols *k = open_root(root);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_string_equal(kernel_symbols_function(k, cases[i][0]), cases[i][1]);
    struct kernel_symbol s;
    assert_true(kernel_symbols_find(k, 0xffffffff81000201, &s));
    assert_string_equal(s.name, "do_one.part.0");
    assert_string_equal(s.function, "do_one");
    assert_string_equal(s.module, "");
    assert_int_equal(s.offset, 1);
    kernel_symbols_free(k);
    remove_root(root);
}

static void new_symbols_are_found(void **state)
{
    (void)state;
    struct kernel_symbol s;
    char *root = make_root();
    put(root, "proc/kallsyms", symbols);
    put(root, "proc/modules", modules);
    struct kernel_symbols *k = open_root(root);
    struct buf more = BUF_INIT;
    buf_printf(&more, "%sffffffffc0400000 t third_begins\t[third]\n", symbols);
    put(root, "proc/kallsyms", more.data);
    assert_false(kernel_symbols_find(k, 0xffffffffc0400000, &s)); /* read a moment ago */
    assert_int_equal(kernel_symbols_reads(k), 1);
    a_second();
    assert_false(kernel_symbols_find(k, 0x400000, &s)); /* no reason to look: user space */
    assert_true(kernel_symbols_find(k, 0xffffffff81000110, &s));
    assert_int_equal(kernel_symbols_reads(k), 1);
    assert_true(kernel_symbols_find(k, 0xffffffffc0400000, &s));
    assert_string_equal(s.module, "third");
    assert_false(s.gone);
    assert_int_equal(kernel_symbols_reads(k), 2);
    buf_release(&more);
    kernel_symbols_free(k);
    remove_root(root);
}

static void another_module_at_the_same_place_is_noticed(void **state)
{
    (void)state;
    struct kernel_symbol s;
    char *root = make_root();
    put(root, "proc/kallsyms", symbols);
    put(root, "proc/modules", modules);
    struct kernel_symbols *k = open_root(root);
    assert_true(kernel_symbols_find(k, 0xffffffffc0300010, &s));
    const char *name = s.name;
    assert_string_equal(name, "second_begins");
    put(root, "proc/modules", "other 4096 0 - Live 0xffffffffc0300000\n");
    put(root, "proc/kallsyms", "ffffffff81000000 T _stext\nffffffffc0300000 t other_begins\t[other]\n");
    a_second();
    assert_true(kernel_symbols_find(k, 0xffffffffc0300010, &s));
    assert_string_equal(s.name, "other_begins");
    assert_string_equal(name, "second_begins"); /* what was handed out stays */
    assert_true(kernel_symbols_find(k, 0xffffffffc0200810, &s));
    assert_string_equal(s.name, "first_ends");
    assert_true(s.gone);
    kernel_symbols_free(k);
    remove_root(root);
}

static void hidden_addresses_are_told(void **state)
{
    (void)state;
    static const char hidden[] = "0000000000000000 T _stext\n0000000000000000 t f\t[ext4]\n";
    struct kernel_symbols *k;
    struct error e = {""};
    char *root = make_root();
    assert_int_equal(kernel_symbols_new(root, &k, &e), -ENOENT);
    assert_non_null(strstr(e.text, "CONFIG_KALLSYMS"));
    put(root, "proc/kallsyms", hidden);
    assert_int_equal(kernel_symbols_new(root, &k, &e), -EPERM);
    assert_non_null(strstr(e.text, "CAP_SYSLOG"));
    put(root, "proc/sys/kernel/kptr_restrict", "2\n");
    assert_int_equal(kernel_symbols_new(root, &k, &e), -EPERM);
    assert_non_null(strstr(e.text, "kernel.kptr_restrict=2"));
    put(root, "proc/kallsyms", "\n");
    assert_int_equal(kernel_symbols_new(root, &k, &e), -EPROTO);
    assert_null(k);
    remove_root(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("an address finds the symbol that holds it, and nothing beyond an end",
             addresses_find_their_symbol),
        TEST("a frame finds the function that called, or that was interrupted at its beginning",
             frames_find_their_function),
        TEST("of several names for a place the best is chosen", of_several_names_the_best_is_chosen),
        TEST("lines that are none are passed over and counted", bad_lines_are_passed_over),
        TEST("what is gone keeps its name until something takes its place", what_is_gone_keeps_its_name),
        TEST("names for grouping are without what the compiler added", names_are_for_grouping),
        TEST("a symbol that came later is found, after a second", new_symbols_are_found),
        TEST("another module at the same place is noticed", another_module_at_the_same_place_is_noticed),
        TEST("hidden addresses are told, and what hides them", hidden_addresses_are_told),
    };
    return cmocka_run_group_tests_name("kallsyms", tests, NULL, NULL);
}
