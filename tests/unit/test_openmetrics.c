/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/view/openmetrics: labels that need escaping, and that no counter falls. What the strict parser says:
 * tests/tags/reading.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash_map.h"
#include "view/formats/openmetrics.h"

static struct account_row *put(struct account_rows *rows, struct alloc_texts *texts, const char *function,
                               const char *file, const char *module)
{
    struct account_row *r = vec_push(rows);
    r->key.function = function ? alloc_texts_put(texts, function, strlen(function)) : ALLOC_NO_TEXT;
    r->key.file = file ? alloc_texts_put(texts, file, strlen(file)) : ALLOC_NO_TEXT;
    r->key.module = module ? alloc_texts_put(texts, module, strlen(module)) : ALLOC_NO_TEXT;
    return r;
}

static void assert_has(const char *text, const char *line)
{
    if (!strstr(text, line))
        fail_msg("no %s in:\n%s", line, text);
}

static void labels_are_escaped(void **state)
{
    (void)state;
    struct account_rows rows = {0};
    struct alloc_texts texts = {.bytes = BUF_INIT};
    struct accounts none = {.rows = {0}};
    struct buf b = BUF_INIT;
    struct sink out = sink_to_buf(&b);
    put(&rows, &texts, "operator\"\" _x", "a\\b\nc\xff\xc3\xa4.c", "/usr/lib/libx.so.1")
        ->of[ACCOUNT_AFTER]
        .of[ACCOUNT_ALLOCATED_CALLS] = 7;
    put(&rows, &texts, NULL, NULL, NULL)->of[ACCOUNT_AFTER].of[ACCOUNT_ALLOCATED_CALLS] = 6;
    /* two that a reader cannot tell apart */
    put(&rows, &texts, "f\x01", NULL, "/a/m")->of[ACCOUNT_AFTER].of[ACCOUNT_ALLOCATED_CALLS] = 2;
    put(&rows, &texts, "f\x02", NULL, "/b/m")->of[ACCOUNT_AFTER].of[ACCOUNT_ALLOCATED_CALLS] = 3;
    put(&rows, &texts, "other", NULL, NULL)->of[ACCOUNT_AFTER].of[ACCOUNT_RELEASED_CALLS] = 1;
    openmetrics_write(&out, &rows, &texts, &none,
                      &(struct openmetrics_options){.prefix = "allium_tags", .top = 3});
    assert_has(buf_str(&b), "# TYPE allium_tags_allocations counter\n"
                            "# HELP allium_tags_allocations Total number of allocations.\n"
                            "allium_tags_allocations_total{function=\"operator\\\"\\\" _x\","
                            "file=\"a\\\\b?c?\xc3\xa4.c\",module=\"libx.so.1\"} 7\n"
                            "allium_tags_allocations_total 6\n"
                            "allium_tags_allocations_total{function=\"f?\",module=\"m\"} 5\n"
                            "allium_tags_allocations_total{place=\"other\"} 0\n");
    assert_has(buf_str(&b), "allium_tags_frees_total{function=\"other\"} 1\n"
                            "allium_tags_frees_total{place=\"other\"} 0\n");
    assert_has(buf_str(&b), "allium_tags_live_objects{place=\"other\"} -1\n");
    assert_has(buf_str(&b), "allium_tags_inexact_places 0\n# EOF\n");
    buf_release(&b);
    vec_release(&rows);
    alloc_texts_release(&texts);
}

/* Samples of the text that lead to a value less than the last one of the same name and labels. */
static unsigned count_falls(const char *text, struct map *names, uint64_t *last)
{
    unsigned falls = 0;
    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        const char *blank = memrchr(line, ' ', (size_t)(end - line));
        if (*line == '#' || !memmem(line, (size_t)(end - line), "_total", 6))
            continue;
        size_t at = map_put(names, line, (size_t)(blank - line), names->len, NULL);
        uint64_t value = strtoull(blank, NULL, 10);
        falls += value < last[at];
        last[at] = value;
    }
    return falls;
}

static void no_counter_falls(void **state)
{
    (void)state;
    enum { PLACES = 30, ROUNDS = 300, NAMES = PLACES * 16 };
    unsigned seed = 7;
    for (uint32_t top = 1; top < 6; top += 2) {
        struct account_rows rows = {0};
        struct alloc_texts texts = {.bytes = BUF_INIT};
        struct accounts none = {.rows = {0}};
        struct map names = {0};
        uint64_t last[NAMES] = {0};
        for (int i = 0; i < PLACES; i++) {
            char name[16];
            snprintf(name, sizeof(name), "f%d", i);
            put(&rows, &texts, name, "a.c", NULL);
        }
        for (int round = 0; round < ROUNDS; round++) {
            struct buf b = BUF_INIT;
            struct sink out = sink_to_buf(&b);
            for (int i = 0; i < 5; i++) {
                struct account_sum *s = &rows.at[rand_r(&seed) % PLACES].of[ACCOUNT_AFTER];
                for (int c = 0; c < ACCOUNT_COUNTERS; c++)
                    s->of[c] += rand_r(&seed) % 3 ? 0 : 1ull << rand_r(&seed) % 16;
            }
            openmetrics_write(&out, &rows, &texts, &none,
                              &(struct openmetrics_options){.prefix = "x", .top = top, .usable = true});
            assert_int_equal(count_falls(buf_str(&b), &names, last), 0);
            assert_true(names.len < NAMES);
            buf_release(&b);
        }
        assert_true(names.len > 8u * (top + 2)); /* places came and went */
        map_release(&names);
        vec_release(&rows);
        alloc_texts_release(&texts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"labels are escaped, and no two are the same", labels_are_escaped, NULL, NULL, NULL},
        {"no counter falls, whoever leads", no_counter_falls, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
