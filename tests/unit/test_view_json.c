/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/view: JSON that a strict parser reads, whose keys are those of allium-json(5), and folded stacks.
 */
#include "test_view_json.h"

#include "model/table/table.h"
#include "view/formats/folded.h"
#include "view/formats/json.h"
#include "view/profile/run_json.h"
#include "view/profile/who_view.h"
#include "view/table/table_view.h"

#include <inttypes.h>

#ifndef JSON_MAN_PAGE
#define JSON_MAN_PAGE __FILE__ /* beside this file */
#endif

/* ---- the writer ---- */

static void integers_and_addresses(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    struct sink sink = sink_to_buf(&out);
    struct json j = {.out = &sink};
    json_open(&j, NULL, '{');
    json_whole(&j, "most", UINT64_MAX);
    json_whole(&j, "odd", (1ull << 53) + 1);
    json_signed(&j, "least", INT64_MIN);
    json_instant(&j, "now", 1700000000000000001u);
    json_instant(&j, "before_1970", 0);
    json_instant(&j, "year_2262", INT64_MAX);
    json_hex(&j, "address", 0x7f00deadbeef);
    json_real(&j, "real", 0.25);
    json_real(&j, "none", NAN);
    json_rounded(&j, "zero", -0.2);
    json_open(&j, "empty", '[');
    json_close(&j, ']');
    json_close(&j, '}');
    assert_non_null(strstr(buf_str(&out), "18446744073709551615"));
    check_json(&out, "assert j['most'] == 2**64 - 1 and j['odd'] == 2**53 + 1 and j['least'] == -2**63\n"
                     "assert j['address'] == '0x7f00deadbeef' and j['real'] == 0.25 and j['none'] is None\n"
                     "assert j['zero'] == 0 and '-0' not in raw and j['empty'] == []\n"
                     "assert j['now'] == 1700000000000000001\n"
                     "assert j['before_1970'] is None and j['year_2262'] is None\n");
    buf_release(&out);
}

static void names_of_any_bytes(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    struct sink sink = sink_to_buf(&out);
    struct json j = {.out = &sink};
    json_open(&j, NULL, '[');
    json_text(&j, NULL, "plain \"quoted\" back\\slash\n\x1b[31m\x7f");
    json_text(&j, NULL, "\xc3\xa9\xe2\x82\xac\xf0\x9f\xa7\x85"); /* é € and an onion */
    json_text(&j, NULL,
              "\xff|\xc0\x80|\xed\xa0\x80|\xf4\x90\x80\x80|\xe2\x82"); /* no UTF-8, overlong, surrogate */
    json_text(&j, NULL, NULL);
    json_close(&j, ']');
    check_json(&out,
               "assert j[0] == 'plain \"quoted\" back\\\\slash\\n\\x1b[31m\\x7f', j[0]\n"
               "assert j[1] == '\\u00e9\\u20ac\\U0001f9c5', j[1]\n"
               "assert j[2] == r'\\xff|\\xc0\\x80|\\xed\\xa0\\x80|\\xf4\\x90\\x80\\x80|\\xe2\\x82', j[2]\n"
               "assert j[3] is None\n"
               "assert all(ord(c) >= 32 or c == '\\n' for c in raw)\n");
    buf_release(&out);
}

/* ---- the report ---- */

static void report_by_stack(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD);
    struct buf out = report_of(p, ROLLUP_BY_STACK, 0);
    check_json(
        &out,
        "assert (j['schema'], j['version'], j['group'], j['sort']) == ('allium-report', 3, 'stack', 'live')\n"
        "assert j['source'] == 'shop.allium' and j['filter'] is None and j['exact'] is False\n"
        "assert j['periods_bytes'] == [524288] and j['taken_ns'] == 1795269864000000000\n"
        "assert j['rows_in_all'] == len(j['rows']) == 5\n"
        "first = j['rows'][0]\n"
        "assert [f['function'] for f in first['stack']] == ['value_new', 'json_parse', 'load_catalogue', "
        "'main']\n"
        "assert [f['inlined'] for f in first['stack']] == [True, False, False, False]\n"
        "assert first['stack'][0]['address'] == '0x4010' and first['stack'][0]['line'] == 12\n"
        "assert [r['stack_end'] for r in j['rows']] == ['whole', 'whole', 'no_code', 'cut', 'whole']\n"
        "assert j['rows'][2]['stack'][0]['function'] == 'shop+0x8010' and len(j['rows'][2]['stack']) == 1\n"
        "for r in j['rows'] + [dict(self=j['total'], inclusive=j['total'])]:\n"
        "    for v in (r['self'], r['inclusive']):\n"
        "        for k in v:\n"
        "            if k + '_low' in v: assert v[k + '_low'] <= v[k] <= v[k + '_high'], (k, v)\n"
        "assert abs(sum(r['self']['live_bytes'] for r in j['rows']) - j['total']['live_bytes']) <= 3\n"
        "none = j['rows'][4]['self']\n"
        "assert none['live_bytes'] == 0 and none['live_bytes_high'] > 1 << 20 and none['oldest_age_ns'] is "
        "None\n");
    buf_release(&out);
    profile_free(p);
}

static void report_of_the_whole(void **state)
{
    (void)state;
    struct profile *p = shop(1);
    p->images.at[0].id = UINT64_MAX;
    p->images.at[0].losses[PROFILE_LOST_SAMPLES] = (1ull << 63) + 1;
    p->images_dropped = 3;
    struct buf out = report_of(p, ROLLUP_BY_FUNCTION, 2);
    check_json(
        &out,
        "assert j['exact'] is True and j['periods_bytes'] == [1]\n"
        "assert j['rows_in_all'] > len(j['rows']) == 2\n"
        "assert j['rows'][0]['name'] == 'operator new(unsigned long)' and j['rows'][0]['file'] is None\n"
        "t = j['total']; assert t['live_bytes'] == t['live_bytes_low'] == t['live_bytes_high']\n"
        "assert t['live_bytes'] == 16*4096 + 6*200 + 3*2**20 + 65536 + 48\n"
        "assert j['lost']['samples'] == 2**63 + 1 and j['lost']['images_dropped'] == 3\n"
        "assert j['lost']['ledger_full'] is None and j['lost']['inconsistent'] is False\n"
        "i, = j['processes']; assert i['image'] == '0xffffffffffffffff' and i['parent_image'] is None\n"
        "assert i['program'] == 'shop' and i['state'] == 'exited' and i['pid'] == 4242\n"
        "assert j['cost']['cpu_ns'] == 4100000 and j['cost']['samples'] == 113\n"
        "assert j['resident']['rss_anon_bytes'] == 30 << 20 and j['resident']['slack_bytes'] == 22 * 8\n");
    buf_release(&out);
    profile_free(p);
}

static void unknown_is_null(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD);
    p->images.at[0].rss_anon_bytes = 0;
    const struct rollup_options o = {.group = ROLLUP_BY_SIZE, .keep_sample = any_sample};
    const struct report_json_options json = {.filter = "older than 1h"};
    struct rollup *r = rollup_new(p, &o);
    struct buf out = BUF_INIT;
    struct sink sink = sink_to_buf(&out);
    report_json_write(&sink, r, &json);
    check_json(
        &out,
        "t = j['total']\n"
        "assert t['live_bytes'] > 0 and t['allocated_bytes'] is None and t['peak_objects_low'] is None\n"
        "assert j['source'] is None and j['filter'] == 'older than 1h'\n"
        "assert j['resident'] == {k: None for k in j['resident']}\n"
        "assert j['rows'][0]['least_size_bytes'] == 4096 and j['rows'][0]['most_size_bytes'] == 8191\n");
    rollup_free(r);
    send_back(p, 0);
    const struct rollup_options then = {.group = ROLLUP_BY_OWNER};
    r = rollup_new(p, &then);
    buf_reset(&out);
    report_json_write(&sink, r, &json);
    check_json(&out,
               "unknown = 'peak_bytes', 'temporary_allocations_high', 'oldest_age_ns', 'median_age_ns'\n"
               "for v in [j['total']] + [r[k] for r in j['rows'] for k in ('self', 'inclusive')]:\n"
               "    assert [v[k] for k in unknown] == [None] * 4 and v['allocated_bytes'] > 0\n"
               "assert j['processes'][0]['peak_bytes'] is None and j['processes'][0]['peak_ns'] is None\n"
               "assert j['cost']['cpu_ns'] is None and j['cost']['ledger_bytes'] is None\n"
               "assert j['lost']['images_unread'] == 0 and j['cost']['samples'] == 113\n");
    buf_release(&out);
    rollup_free(r);
    profile_free(p);
}

static void nothing_was_sampled(void **state)
{
    (void)state;
    struct profile *p = profile_new();
    struct buf out = report_of(p, ROLLUP_BY_STACK, 0);
    check_json(&out, "assert j['periods_bytes'] == [] and j['total']['allocated_bytes_high'] is None\n");
    buf_release(&out);
    p->period_bytes = PERIOD;
    out = report_of(p, ROLLUP_BY_STACK, 0);
    check_json(&out,
               "t = j['total']\n"
               "assert j['periods_bytes'] == [1 << 19] and j['exact'] is False\n"
               "assert t['allocated_bytes'] == 0 and 3.68 < t['allocated_bytes_high'] / (1 << 19) < 3.69\n");
    buf_release(&out);
    profile_free(p);
}

/* Programs that ran without the agent. */
static void add_unobserved(struct profile *p)
{
    uint32_t program = profile_string(p, "/opt/tool"), reason = profile_string(p, "is statically linked");
    *vec_push(&p->unobserved) = (struct profile_unobserved){program, reason, 3};
    *vec_push(&p->unobserved) = (struct profile_unobserved){0, reason, 1};
}

static void unobserved_programs(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD);
    add_unobserved(p);
    struct buf out = report_of(p, ROLLUP_BY_STACK, 0);
    check_json(&out, "why = 'is statically linked'\n"
                     "assert j['unobserved'] == [{'program': '/opt/tool', 'reason': why, 'processes': 3},\n"
                     "                           {'program': None, 'reason': why, 'processes': 1}]\n");
    buf_release(&out);
    profile_free(p);
}

/**
 * What who and frees write of a profile with a live block, and with two freed ones, of which one was unlike the other.
 */
static void add_blocks(struct buf *all, struct profile *p)
{
    struct sink out = sink_to_buf(all);
    struct address_info w;
    struct profile_free f = {.address = 0x1000, .size_bytes = 24, .stack = 0, .location = PROFILE_NONE};
    *vec_push(&p->frees) = f;
    f.stack = PROFILE_NONE;
    f.thread = PROFILE_NONE;
    *vec_push(&p->frees) = f;
    static const uint64_t addresses[] = {0x1004, 0x1020, 0x7f0000000000u};
    for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++) {
        buf_addch(all, ',');
        address_info_find(&w, p, addresses[i]);
        who_json_write(&out, &w, p, &(struct who_options){.source = "x", .size_bytes = i ? UINT64_MAX : 24});
        address_info_release(&w);
    }
    buf_addch(all, ',');
    frees_json_write(&out, p, (uint32_t[]){1, 0}, 2, &(struct frees_options){.source = "x"});
}

static struct buf tree_of(const struct profile *p, const char *function)
{
    struct buf text = BUF_INIT;
    struct sink out = sink_to_buf(&text);
    struct rollup *r = rollup_new(
        p, &(struct rollup_options){.group = ROLLUP_BY_CALLEES, .inclusive = true, .focus = function});
    report_json_write(&out, r, &(struct report_json_options){.source = "x"});
    rollup_free(r);
    return text;
}

/** Every key of every grouping stands in the manual, and every key in the manual is written somewhere. */
static void keys_are_documented(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD);
    add_unobserved(p);
    p->kernel = (struct profile_kernel){.known = true, .settle_ns = 1};
    p->trace.known = true;
    char page[PATH_MAX] = JSON_MAN_PAGE, real[PATH_MAX], *slash = strrchr(page, '/');
    if (!strcmp(page, __FILE__))
        snprintf(slash ? slash + 1 : page, 64, "../../man/allium-json.5.scd");
    assert_non_null(realpath(page, real));
    struct profile *other = shop(4 * PERIOD); /* so that rows change */
    other->images.at[0].id++;
    struct buf all = BUF_INIT, check = BUF_INIT;
    buf_addch(&all, '[');
    for (int group = ROLLUP_BY_STACK; group <= ROLLUP_BY_PROCESS; group++) {
        struct buf one = report_of(p, (enum rollup_group)group, 0);
        struct buf change = diff_of(p, other, (enum rollup_group)group);
        buf_printf(&all, "%s%s,%s", group ? "," : "", buf_str(&one), buf_str(&change));
        buf_release(&one);
        buf_release(&change);
    }
    struct buf tree = tree_of(p, "main");
    struct profile *third = shop(PERIOD);
    third->images.at[0].id += 2;
    struct buf captures = diff_of_captures(p, third, other);
    buf_printf(&all, ",%s,%s", buf_str(&tree), buf_str(&captures));
    buf_release(&captures);
    profile_free(third);
    buf_release(&tree);
    add_blocks(&all, p);
    buf_addch(&all, ',');
    struct sink out = sink_to_buf(&all);
    run_json_write(&out, p, &(struct run_json_options){.command = "shop"});
    buf_addch(&all, ']');
    buf_printf(
        &check,
        "import re\n"
        "page = open('%s').read().split('# WATCH')[0]\n" /* tests/cli/watch.py has the keys of that */
        "heads = [l for l in page.splitlines() if re.fullmatch(r'\\*[^ ]+\\*(, \\*[^ ]+\\*)*', l)]\n"
        "told = {k for l in heads for k in re.findall(r'\\*([a-z_]+)\\*', l)}\n"
        "def keys(v):\n"
        "    if isinstance(v, list): return {k for e in v for k in keys(e)}\n"
        "    return set(v) | {k for e in v.values() for k in keys(e)} if isinstance(v, dict) else set()\n"
        "all = {re.sub('_per_s(?=_|$)', '', k) for k in keys(j)}\n"
        "written = {k for k in all if not re.search('_(low|high)$', k)}\n"
        "assert {k for k in all - written} <= {k + e for k in told for e in ('_low', '_high')}\n"
        "assert written == told, written ^ told\n",
        real);
    check_json(&all, buf_str(&check));
    buf_release(&all);
    buf_release(&check);
    profile_free(other);
    profile_free(p);
}

/* ---- tables ---- */

static void table_as_json(void **state)
{
    static const struct table_column columns[] = {
        {.name = "pid", .type = TABLE_SIGNED},
        {.name = "live", .unit = TABLE_BYTES, .type = TABLE_ESTIMATE},
        {.name = "rss_anon", .unit = TABLE_BYTES, .type = TABLE_WHOLE},
        {.name = "began", .unit = TABLE_INSTANT, .type = TABLE_WHOLE},
        {.name = "cost", .unit = TABLE_PERCENT, .type = TABLE_REAL},
        {.name = "stuck", .type = TABLE_FLAG},
        {.name = "at", .type = TABLE_ADDRESS},
        {.name = "command", .type = TABLE_TEXT},
    };
    (void)state;
    struct table *t = table_new("ps", 1, columns, 8);
    struct estimate e = {.samples = 3, .exact = 3, .value = 300, .seen = 300};
    table_row(t);
    table_signed(t, 0, 4242);
    table_estimate(t, 1, &e);
    table_whole(t, 2, UINT64_MAX);
    table_whole(t, 3, TAKEN);
    table_real(t, 4, 0.5);
    table_flag(t, 5, true);
    table_whole(t, 6, 0xabc);
    table_text(t, 7, "one");
    table_text(t, 7, "two"); /* replaces it */
    table_row(t);
    assert_int_equal(table_rows(t), 2);
    struct buf out = BUF_INIT;
    struct sink sink = sink_to_buf(&out);
    table_view_json(&sink, t);
    check_json(&out,
               "assert j['schema'] == 'allium-ps' and j['version'] == 1\n"
               "a, b = j['rows']\n"
               "assert a == {'pid': 4242, 'live_bytes': 300, 'live_bytes_low': 300, 'live_bytes_high': 300,\n"
               "    'rss_anon_bytes': 2**64 - 1, 'began_ns': 1795269864000000000, 'cost_percent': 0.5,\n"
               "    'stuck': True, 'at': '0xabc', 'command': 'two'}, a\n"
               "assert b == {k: None for k in a}\n");
    buf_release(&out);
    table_free(t);
}

/* ---- folded ---- */

static struct buf fold(const struct profile *p, enum rollup_sort metric)
{
    const struct rollup_options o = {.group = ROLLUP_BY_STACK};
    struct rollup *r = rollup_new(p, &o);
    struct buf out = BUF_INIT;
    struct sink sink = sink_to_buf(&out);
    folded_write(&sink, r, metric);
    assert_int_equal(sink_finish(&sink), 0);
    rollup_free(r);
    return out;
}

static void folded_stacks(void **state)
{
    (void)state;
    struct profile *p = shop(1);
    struct buf out = fold(p, ROLLUP_SORT_LIVE);
    assert_string_equal(
        buf_str(&out), "[JIT or unknown code];shop+0x8010 65536\n"
                       "[cut];walk;walk;walk;walk;node_new 48\n"
                       "main;load_catalogue;json_parse;value_new 65536\n"
                       "main;serve;std::map<std::string, Item>::insert(std::pair<std::string const, Item>&&);"
                       "operator new(unsigned long) 3146928\n");
    buf_release(&out);
    out = fold(p, ROLLUP_SORT_ALLOCATIONS);
    assert_non_null(strstr(buf_str(&out), "main;serve;walk;walk;walk;node_new 12\n"));
    buf_release(&out);
    out = fold(p, ROLLUP_SORT_TEMPORARY);
    assert_non_null(strstr(buf_str(&out), "main;load_catalogue;json_parse;value_new 16384\n"));
    buf_release(&out);
    profile_free(p);
}

static void folded_names(void **state)
{
    (void)state;
    struct profile *p = profile_new();
    uint32_t image = add_image(p, "odd", 1, "/odd"), m = add_module(p, "/odd", 0);
    uint32_t root = add_code(p, m, 1, "Lapp/Main;", "", 0);
    uint32_t one = add_code(p, m, 2, "line\nbreak \xff\xc3\xa9", "", 0);
    uint32_t same = add_code(p, m, 3, "line\nbreak \xff\xc3\xa9", "", 7); /* elsewhere, of the same name */
    add_objects(p, (struct objects){image, add_stack(p, PROFILE_STACK_WHOLE, 2, (uint32_t[]){one, root}), 0,
                                    10, 1, 2, 2, 2, 0, 0, 0});
    add_objects(p, (struct objects){image, add_stack(p, PROFILE_STACK_WHOLE, 2, (uint32_t[]){same, root}), 0,
                                    10, 1, 1, 1, 1, 0, 0, 0});
    struct buf out = fold(p, ROLLUP_SORT_PEAK);
    assert_string_equal(buf_str(&out), "Lapp/Main:;line?break ?\xc3\xa9 30\n");
    buf_release(&out);
    profile_free(p);
}

/** The form that speedscope and flamegraph.pl take: frames, one blank, an integer. */
static void folded_form(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD);
    for (int metric = ROLLUP_SORT_LIVE; metric <= ROLLUP_SORT_TEMPORARY; metric++) {
        struct buf out = fold(p, (enum rollup_sort)metric);
        double sum = 0;
        int lines = 0;
        for (char *save = NULL, *line = strtok_r(out.data, "\n", &save); line;
             line = strtok_r(NULL, "\n", &save)) {
            char *blank = strrchr(line, ' ');
            assert_non_null(blank);
            assert_int_equal(strspn(blank + 1, "0123456789"), strlen(blank + 1));
            assert_true(blank > line && line[0] != ';' && blank[-1] != ';' && !strstr(line, ";;"));
            sum += strtod(blank + 1, NULL);
            lines++;
        }
        const struct rollup_options o = {.group = ROLLUP_BY_STACK};
        struct rollup *r = rollup_new(p, &o);
        assert_true(lines > 0 && fabs(sum - rollup_sort_value((enum rollup_sort)metric, &r->total)) <= lines);
        rollup_free(r);
        buf_release(&out);
    }
    profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("JSON keeps all digits of 64 bits, and addresses are hexadecimal texts", integers_and_addresses),
        TEST("JSON of names that hold quotes, controls and no UTF-8 is sound", names_of_any_bytes),
        TEST("a report by stack has its frames, ends and intervals", report_by_stack),
        TEST("a report has losses, cost and processes of the whole profile", report_of_the_whole),
        TEST("what is not known is null", unknown_is_null),
        TEST("where nothing was sampled the totals have their bound, if the period is known",
             nothing_was_sampled),
        TEST("programs that ran without the agent are listed", unobserved_programs),
        TEST("the manual has every key that is written, and no other", keys_are_documented),
        TEST("a table in JSON has its units in the keys", table_as_json),
        TEST("folded stacks begin at the root, and inlined functions are frames", folded_stacks),
        TEST("folded names hold no separator, and stacks of the same names are one line", folded_names),
        TEST("folded lines are frames, a blank and an integer, and add up", folded_form),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
