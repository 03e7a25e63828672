/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TEST_VIEW_JSON
#define TEST_VIEW_JSON

/*
 * What the tests of JSON share, included by each: profiles as JSON, and python to ask what it says.
 */

#include "test_view_truth.h"

#include "model/profile/profile_diff.h"
#include "view/profile/diff_view.h"
#include "view/profile/report_json.h"

#include <limits.h>
#include <unistd.h>

static char dir[] = "/tmp/allium-json-XXXXXX";

/** Runs a program in python on the JSON: `j` is what it reads as, with duplicate keys refused and integers exact. */
static inline void check_json(const struct buf *json, const char *statements)
{
    static const char *const prelude =
        "import json, sys\n"
        "def unique(pairs):\n"
        "    assert len(dict(pairs)) == len(pairs), [k for k, v in pairs]\n"
        "    return dict(pairs)\n"
        "def refuse(word): raise ValueError(word)\n"
        "raw = open(sys.argv[1], 'rb').read().decode('utf-8')\n"
        "j = json.loads(raw, object_pairs_hook=unique, parse_constant=refuse)\n";
    char path[PATH_MAX], command[2 * PATH_MAX + 32];
    snprintf(path, sizeof(path), "%s/out.json", dir);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(buf_str(json), 1, json->len, f), json->len);
    fclose(f);
    snprintf(path, sizeof(path), "%s/check.py", dir);
    f = fopen(path, "wb");
    assert_non_null(f);
    fprintf(f, "%s%s", prelude, statements);
    fclose(f);
    snprintf(command, sizeof(command), "python3 %s/check.py %s/out.json 1>&2", dir, dir);
    if (system(command))
        fail_msg("python is not content with:\n%s", buf_str(json));
}

static inline struct buf report_of(const struct profile *p, enum rollup_group group, uint32_t top)
{
    const struct rollup_options o = {.group = group};
    const struct report_json_options json = {.source = "shop.allium", .top = top};
    struct rollup *r = rollup_new(p, &o);
    struct buf out = BUF_INIT;
    struct sink sink = sink_to_buf(&out);
    report_json_write(&sink, r, &json);
    assert_int_equal(sink_finish(&sink), 0);
    rollup_free(r);
    return out;
}

static inline struct buf diff_of(const struct profile *before, const struct profile *after,
                                 enum rollup_group group)
{
    const struct diff_options o = {.group = group, .inclusive = group != ROLLUP_BY_STACK};
    const struct diff_verdict verdict = {"live+10%", true};
    const struct diff_view_options view = {
        .source = {"old.allium", "new.allium"}, .verdicts = &verdict, .n_verdicts = 1};
    struct diff *d = diff_new(before, after, &o);
    struct buf out = BUF_INIT;
    struct sink sink = sink_to_buf(&out);
    diff_json_write(&sink, d, &view);
    assert_int_equal(sink_finish(&sink), 0);
    diff_free(d);
    return out;
}

/** Of two captures against one, per second. */
static inline struct buf diff_of_captures(const struct profile *one, const struct profile *two,
                                          const struct profile *after)
{
    static const char *const sources[] = {"old1.allium", "old2.allium", "new.allium"};
    const struct profile *before[] = {one, two};
    const double divisors[] = {2, 3, 4};
    const struct diff_side sides[] = {{before, 2, divisors}, {&after, 1, divisors + 2}};
    const struct diff_view_options view = {
        .source = {"old1.allium, old2.allium", "new.allium"}, .captures = sources, .per = DIFF_PER_SECOND};
    struct diff *d = diff_new_of(sides, &(struct diff_options){.group = ROLLUP_BY_STACK});
    struct buf out = BUF_INIT;
    struct sink sink = sink_to_buf(&out);
    diff_json_write(&sink, d, &view);
    assert_int_equal(sink_finish(&sink), 0);
    diff_free(d);
    return out;
}

static inline int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static inline int remove_dir(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

#endif
