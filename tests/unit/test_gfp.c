/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/model/gfp and cexpr: names of GFP flags from what kernels say of themselves.
 */
#include "test_kernel.h"

#include "model/kernel/cexpr.h"
#include "model/kernel/gfp.h"

#include <errno.h>

/* ---- expressions ---- */

static bool one_name(const void *context, const char *name, size_t len, uint64_t *value)
{
    *value = 7;
    return len == strlen(context) && !memcmp(name, context, len);
}

static void expressions_have_their_value(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t value;
    } cases[] = {
        {"0", 0},
        {"010", 8},
        {"0x400u", 0x400},
        {"1UL << 3 | 1", 9},
        {"1 | 2 ^ 3 & 6 << 1", 1 | (2 ^ (3 & (6 << 1)))},
        {"1 << 2 + 3", 32},
        {"10 - 2 - 3", 5},
        {"~0 >> 63", 1},
        {"-1 & 0xff", 255},
        {"(( gfp_t)((((1UL))) << (BIT)))", 128},
        {"( unsigned long)(( gfp_t)(0x400u|0x800u)) & ~(( gfp_t)0x400u)", 0x800},
        {"(BIT)", 7},
        {"(BIT) << 1", 14},
        {"((void *)0)", 0},
        {"18446744073709551615", UINT64_MAX},
    };
    const struct cexpr_names names = {one_name, "BIT"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint64_t value;
        const char *end = cexpr_parse(cases[i].text, &names, &value);
        assert_non_null(end);
        assert_string_equal(end, "");
        assert_int_equal(value, cases[i].value);
    }
}

static void what_is_no_expression_is_none(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",    "(",     "()",      "1 |", "(1",  "1 << 64", "1 << -1", "08",
        "0x",  "OTHER", "(gfp_t)", "~",   "| 1", "(1 2)",   "\"a\"",   "18446744073709551616",
        "BITS"};
    const struct cexpr_names names = {one_name, "BIT"};
    uint64_t value;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_null(cexpr_parse(cases[i], &names, &value));
    assert_null(cexpr_parse("BIT", NULL, &value));
    char deep[100001];
    for (const char *sign = "(~-"; *sign; sign++) {
        memset(deep, *sign, sizeof(deep) - 1);
        deep[sizeof(deep) - 1] = '\0';
        assert_null(cexpr_parse(deep, &names, &value));
    }
    assert_string_equal(cexpr_parse("1 ) 2", &names, &value), ") 2");
    assert_string_equal(cexpr_parse("1 || 2", &names, &value), "|| 2"); /* not read, and not half of it */
}

/* ---- tables ---- */

static struct gfp_bits read_bits(const char *file)
{
    struct gfp_bits bits = {0};
    struct buf text = recorded(file);
    char name[64];
    unsigned number;
    int len;
    for (const char *at = text.data; sscanf(at, "%63s %u\n%n", name, &number, &len) == 2; at += len)
        gfp_bits_add(&bits, name, number);
    assert_int_equal(bits.len, 26);
    buf_release(&text);
    return bits;
}

static struct gfp_names read_format(const char *file, const struct gfp_bits *bits)
{
    struct gfp_names g = {0};
    struct buf text = recorded(file);
    assert_int_equal(gfp_from_format(&g, text.data, bits), 0);
    buf_release(&text);
    return g;
}

static void assert_says(const struct gfp_names *g, uint64_t flags, const char *text)
{
    struct buf b = BUF_INIT;
    gfp_format(g, flags, &b);
    assert_string_equal(buf_str(&b), text);
    buf_release(&b);
}

/* The values are those of include/linux/gfp_types.h of the version. */
static void formats_of_kernels_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        uint64_t kernel, zero, account, atomic, transhuge_light, nowait, last;
    } cases[] = {
        {"6.1", 0xcc0, 0x100, 0x400000, 0xa20, 0x1c20ca, 0x800, 1 << 23},
        {"6.12", 0xcc0, 0x100, 0x400000, 0x820, 0x1c20ca, 0x2800, 1 << 23},
        {"6.18", 0xcc0, 0x100, 0x400000, 0x820, 0x1c20ca, 0x2800, 1 << 23},
    };
    struct gfp_bits bits = read_bits("gfp-bits-6.12");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char file[64];
        snprintf(file, sizeof(file), "kmalloc-%s.format", cases[i].version);
        struct gfp_names g = read_format(file, &bits);
        assert_says(&g, 0, "none");
        assert_says(&g, cases[i].kernel, "GFP_KERNEL");
        assert_says(&g, cases[i].kernel | cases[i].zero, "GFP_KERNEL|__GFP_ZERO");
        assert_says(&g, cases[i].kernel | cases[i].account, "GFP_KERNEL_ACCOUNT");
        assert_says(&g, cases[i].atomic, "GFP_ATOMIC");
        assert_says(&g, cases[i].transhuge_light, "GFP_TRANSHUGE_LIGHT");
        assert_says(&g, cases[i].nowait, "GFP_NOWAIT");
        assert_says(&g, cases[i].last, "__GFP_ZEROTAGS");
        assert_says(&g, 1ull << 40, "0x10000000000");
        assert_says(&g, cases[i].kernel | 1ull << 40, "GFP_KERNEL|0x10000000000");
        gfp_release(&g);
    }
    vec_release(&bits);
}

static void names_of_bits_need_bits(void **state)
{
    (void)state;
    struct gfp_bits none = {0};
    struct gfp_names g = {0};
    struct buf text = recorded("kmalloc-6.12.format");
    assert_int_equal(gfp_from_format(&g, text.data, &none), -EPROTO);
    assert_int_equal(g.all.len, 0);
    assert_int_equal(gfp_from_bits(&g, &none), -ENOENT);
    assert_says(&g, 0xdc0, "0xdc0");
    buf_release(&text);
}

/* Bits and composed masks give every value that has one of the table's names the words that the format gives it. */
static void bits_alone_say_the_same(void **state)
{
    (void)state;
    static const char *const versions[] = {"6.12", "6.18"};
    for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
        char file[64];
        struct gfp_names from_bits = {0};
        snprintf(file, sizeof(file), "gfp-bits-%s", versions[i]);
        struct gfp_bits bits = read_bits(file);
        snprintf(file, sizeof(file), "kmalloc-%s.format", versions[i]);
        struct gfp_names from_format = read_format(file, &bits);
        assert_int_equal(gfp_from_bits(&from_bits, &bits), 0);
        assert_true(from_format.all.len > 30);
        vec_each (const struct gfp_name, n, &from_format.all) {
            struct buf a = BUF_INIT, b = BUF_INIT;
            gfp_format(&from_format, n->mask, &a);
            gfp_format(&from_bits, n->mask, &b);
            assert_string_equal(buf_str(&b), buf_str(&a));
            buf_release(&a);
            buf_release(&b);
        }
        gfp_release(&from_bits);
        gfp_release(&from_format);
        vec_release(&bits);
    }
}

static void broken_formats_add_nothing(void **state)
{
    (void)state;
    struct gfp_names g = {0};
    struct gfp_bits none = {0};
    struct buf text = recorded("kmalloc-6.1.format");
    char *table = strstr(text.data, "__print_flags");
    assert_int_equal(gfp_from_format(&g, "print fmt: \"\"", &none), -ENOENT);
    for (size_t len = strlen(table); len > strlen("__print_flags(REC->gfp_flags, \"|\""); len--) {
        table[len] = '\0';
        int bad = gfp_from_format(&g, text.data, &none);
        if (!bad) { /* not cut yet */
            assert_non_null(strstr(table, "__GFP_ZEROTAGS\"} )"));
            gfp_release(&g);
            continue;
        }
        assert_int_equal(bad, -EPROTO);
        assert_int_equal(g.all.len, 0);
    }
    gfp_release(&g);
    buf_release(&text);
}

static void what_is_no_bit_is_left_out(void **state)
{
    (void)state;
    struct gfp_bits bits = {0};
    static const char *const words[] = {"___GFP_",    "___GFP__BIT",
                                        "__GFP_ZERO", "MIGRATE_MOVABLE",
                                        "",           "___GFP_AVERYVERYVERYVERYLONGNAMEINDEED_BIT"};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        gfp_bits_add(&bits, words[i], 1);
    gfp_bits_add(&bits, "___GFP_LAST< (_BIT", 1);
    gfp_bits_add(&bits, "___GFP_ZERO_BIT", 64);
    assert_int_equal(bits.len, 0);
    gfp_bits_add(&bits, "___GFP_ZERO_BIT", 63);
    assert_int_equal(bits.len, 1);
    vec_release(&bits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("expressions have the value that C gives them", expressions_have_their_value),
        TEST("what is no expression is none, however deep", what_is_no_expression_is_none),
        TEST("the formats of 6.1, 6.12 and 6.18 are read", formats_of_kernels_are_read),
        TEST("names of bits are not guessed", names_of_bits_need_bits),
        TEST("the bits alone give every name of the kernel's table", bits_alone_say_the_same),
        TEST("a format that is cut anywhere adds nothing", broken_formats_add_nothing),
        TEST("what is no bit of GFP flags is left out", what_is_no_bit_is_left_out),
    };
    return cmocka_run_group_tests_name("gfp", tests, NULL, NULL);
}
