/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/view/report and summary: screens, compared as a whole; the zone is UTC.
 */
#include "test_view_truth.h"

#include "view/profile/report.h"

static const struct text_style utf8 = {.utf8 = true};

static void assert_text(struct buf *b, const char *expected)
{
    assert_string_equal(buf_str(b), expected);
    buf_reset(b);
}

static struct buf screen(const struct profile *p, struct rollup_options o, struct report_options options)
{
    struct buf b = BUF_INIT;
    struct sink out = sink_to_buf(&b);
    struct rollup *r = rollup_new(p, &o);
    report_write(&out, r, &options);
    assert_int_equal(sink_finish(&out), 0);
    rollup_free(r);
    return b;
}

static const char sampled_screen[] =
    "shop (pid 4242), exited\n"
    "  shop.allium\n"
    "  /opt/shop/bin/shop --listen 8080\n"
    "  2026-11-21 14:02:11 UTC, for 2m13s\n"
    "  sampled every 512 KiB on average; in brackets the 95 % interval\n"
    "\n"
    "  at exit    15.1 MiB (10.7–20.9) in 28.7k (9.50–89.8) objects\n"
    "  peak       38.1 MiB (30.8–47.0) at 14:03:12, 61 s after the start\n"
    "  allocated  69.3 MiB (59.6–80.5) in 239k (162–393) allocations\n"
    "  temporary  19 % of that: 13.0 MiB (8.50–19.1) freed before the thread's next allocation\n"
    "\n"
    "Still held at the end, by stack, innermost call first\n"
    "      LIVE  SHARE  95 % INTERVAL  OBJECTS  ALLOCATED   TEMP  OLDEST\n"
    "  8.03 MiB   53 %      4.60–13.0    2.06k   30.1 MiB  6.7 %   2m32s\n"
    "      value_new   value.h:12 inlined\n"
    "      json_parse  parse.c:214\n"
    "      … 2 more frames\n"
    "  6.01 MiB   40 %      4.08–9.58    15.7k   30.0 MiB   20 %   2m05s\n"
    "      operator new(unsigned long)                                                (libstdc++.so.6)\n"
    "      std::map<std::string, Item>::insert(std::pair<std::string const, Item>&&)  cache.cc:88\n"
    "      … 2 more frames\n"
    "   545 KiB  3.5 %      64.0–2927        9   2.13 MiB    0 %    60 s\n"
    "      shop+0x8010            (shop)\n"
    "      [JIT or unknown code]\n"
    "  … 1 more, together 3.3 %\n"
    "\n"
    "Lost\n"
    "  2 stacks deeper than the limit, marked [cut]: outer callers are unknown. Use the innermost calls,\n"
    "  or --by function.\n"
    "  4 stacks could not be walked to the end, marked with the reason in [brackets]. Compile the code\n"
    "  with -fasynchronous-unwind-tables; JIT code cannot be walked.\n"
    "Cost of observing\n"
    "  113 samples, 25 live; 1 MiB of ledger (limit 64 MiB); 4.10 ms of CPU in the sampling path, < 0.1 %\n"
    "  of 2m13s\n"
    "  The recorder (allium run) took 62 ms of CPU and at most 21 MiB of memory\n"
    "Not in these figures\n"
    "  Live 15.1 MiB (10.7–20.9) and about 139 KiB of slack that malloc added are 51 % of the 30 MiB of\n"
    "  anonymous memory (RssAnon, as last seen). The rest: free memory that the allocator keeps, the\n"
    "  program's own allocators, direct mmap, JIT code, thread stacks.\n";

static void report_sampled(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD);
    p->images.at[0].losses[PROFILE_LOST_STACK_CUT] = 2;
    p->images.at[0].losses[PROFILE_LOST_STACK_BROKEN] = 4;
    p->recorder_cpu_ns = 62000000;
    p->recorder_peak_bytes = 21 << 20;
    struct buf b =
        screen(p, (struct rollup_options){.group = ROLLUP_BY_STACK},
               (struct report_options){
                   .style = {.columns = 100, .utf8 = true}, .source = "shop.allium", .top = 3, .frames = 2});
    assert_text(&b, sampled_screen);
    buf_release(&b);
    profile_free(p);
}

static const char exact_screen[] =
    "shop (pid 4242), running\n"
    "  /opt/shop/bin/shop --listen 8080\n"
    "  2026-11-21 14:02:11 UTC, for 2m13s\n"
    "  exact: every allocation\n"
    "\n"
    "  live now   3.13 MiB in 25 objects\n"
    "  peak       6.26 MiB at 14:03:12, 61 s after the start\n"
    "  allocated  15.5 MiB in 113 allocations\n"
    "  temporary  0.1 % of that: 18.8 KiB freed before the thread's next allocation\n"
    "\n"
    "Held at the peak, by function; SELF without its callees, TOTAL with them\n"
    "      SELF    SHARE     TOTAL    SHARE  OBJECTS  FUNCTION\n"
    "  6.00 MiB     96 %  6.00 MiB     96 %       11  operator new(unsigned long)\n"
    "   200 KiB    3.1 %   200 KiB    3.1 %       50  value_new\n"
    "  64.0 KiB    1.0 %  64.0 KiB    1.0 %        1  shop+0x8010\n"
    "     192 B  < 0.1 %     192 B  < 0.1 %        4  node_new\n"
    "       0 B      0 %  6.20 MiB     99 %        0  main\n"
    "       0 B      0 %  6.00 MiB     96 %        0  serve\n"
    "  no room for LIVE, ALLOCATED, MODULE\n"
    "  ... 6 more\n"
    "\n"
    "Lost\n"
    "  nothing\n"
    "Cost of observing\n"
    "  113 samples, 25 live; 1 MiB of ledger (limit 64 MiB); 4.10 ms of CPU in the\n"
    "  sampling path, < 0.1 % of 2m13s\n"
    "Not in these figures\n"
    "  Live 3.13 MiB and about 176 B of slack that malloc added are 10 % of the\n"
    "  30 MiB of anonymous memory (RssAnon). The rest: free memory that the allocator\n"
    "  keeps, the program's own allocators, direct mmap, JIT code, thread stacks.\n";

static void report_exact(void **state)
{
    (void)state;
    struct profile *p = shop(1);
    p->images.at[0].state = PROFILE_IMAGE_RUNNING;
    struct buf b = screen(p, (struct rollup_options){.group = ROLLUP_BY_FUNCTION, .sort = ROLLUP_SORT_PEAK},
                          (struct report_options){.style = {.columns = 80}, .top = 6});
    assert_text(&b, exact_screen);
    buf_release(&b);
    profile_free(p);
}

/** A main process and four workers of the same program, one of them still running. */
static struct profile *processes(void)
{
    struct profile *p = shop(PERIOD);
    for (int i = 0; i < 4; i++) {
        uint32_t image = add_image(p, "worker", 5000 + i, "/opt/shop/bin/shop"), m = (uint32_t)p->modules.len;
        add_shop_modules(p, SHOP_AT + 0x10000000u * (unsigned)(i + 1));
        uint32_t stacks = add_shop_stacks(p, m);
        add_objects(p, (struct objects){image, stacks + PARSE, image, 4 * KIB, PERIOD, 10 + (uint32_t)i, 3, 8,
                                        2, 9, 8});
        p->images.at[image].peak_bytes = MIB;
    }
    p->images.at[4].state = PROFILE_IMAGE_RUNNING;
    assert_true(profile_valid(p));
    return p;
}

static const char processes_screen[] =
    "5 process images, 1 running\n"
    "  largest: /opt/shop/bin/shop --listen 8080\n"
    "  2026-11-21 14:02:11 UTC, for 2m13s\n"
    "  sampled every 512 KiB on average; in brackets the 95 % interval\n"
    "  only func:*\n"
    "\n"
    "  live       21.1 MiB (15.7–28.0) in 30.3k (10.7–91.3) objects\n"
    "  peak       54.2 MiB (45.1–64.8), each process at its own peak\n"
    "  allocated  92.4 MiB (80.7–106) in 245k (168–399) allocations\n"
    "  temporary  18 % of that: 17.0 MiB (11.8–23.8) freed before the thread's next allocation\n"
    "\n"
    "  the largest processes\n"
    "      LIVE  SHARE  95 % INTERVAL  OBJECTS  ALLOCATED  TEMP  OLDEST  PROCESS\n"
    "  15.1 MiB   71 %      10.7–20.9    28.7k   69.3 MiB  19 %   2m32s  shop (4242)\n"
    "  1.51 MiB  7.1 %      0.32–4.39      386   5.02 MiB  20 %    29 s  worker (5000)\n"
    "  1.51 MiB  7.1 %      0.32–4.39      386   5.52 MiB  18 %    29 s  worker (5001)\n"
    "  … 2 more, together 14 %\n"
    "\n"
    "Held, by first function outside the C and C++ libraries\n"
    "      LIVE  SHARE  95 % INTERVAL  OBJECTS  ALLOCATED  TEMP  FUNCTION\n"
    "  14.1 MiB   67 %      9.36–20.3    3.60k   53.2 MiB  11 %  json_parse\n"
    "  6.01 MiB   28 %      4.08–9.58    15.7k   30.0 MiB  20 %  std::map<std::s…onst, Item>&&)\n"
    "  no room for OLDEST, MODULE\n"
    "  … 2 more, together 4.9 %\n"
    "\n"
    "Lost\n"
    "  nothing\n"
    "Cost of observing\n"
    "  159 samples, 37 live; 5 MiB of ledger (limit 320 MiB); 4.10 ms of CPU in the sampling\n"
    "  path, < 0.1 % of 11m05s\n"
    "Not in these figures\n"
    "  For the 1 of 5 process images with a known RssAnon: Live 15.1 MiB (10.7–20.9) and about\n"
    "  139 KiB of slack that malloc added are 51 % of the 30 MiB of anonymous memory (RssAnon,\n"
    "  as last seen). The rest: free memory that the allocator keeps, the program's own\n"
    "  allocators, direct mmap, JIT code, thread stacks.\n";

static void report_processes(void **state)
{
    (void)state;
    struct profile *p = processes();
    struct buf b =
        screen(p, (struct rollup_options){.group = ROLLUP_BY_OWNER},
               (struct report_options){.style = {.columns = 90, .utf8 = true}, .filter = "func:*", .top = 2});
    assert_text(&b, processes_screen);
    buf_release(&b);
    profile_free(p);
}

/** Nothing wider than the terminal, whatever there is to show. */
static void report_fits(void **state)
{
    (void)state;
    struct profile *p = processes();
    for (int k = 0; k < PROFILE_LOSSES; k++)
        p->images.at[0].losses[k] = 1234567;
    for (unsigned columns = 60; columns <= 140; columns += 5)
        for (int group = ROLLUP_BY_STACK; group <= ROLLUP_BY_PROCESS; group++)
            for (int sort = ROLLUP_SORT_LIVE; sort <= ROLLUP_SORT_AGE; sort++) {
                struct buf b = screen(p,
                                      (struct rollup_options){.group = (enum rollup_group)group,
                                                              .sort = (enum rollup_sort)sort},
                                      (struct report_options){.style = {.columns = columns, .utf8 = true}});
                for (char *save = NULL, *line = strtok_r(b.data, "\n", &save); line;
                     line = strtok_r(NULL, "\n", &save))
                    if (text_width(line) > columns)
                        fail_msg("wider than %u: %s", columns, line);
                buf_release(&b);
            }
    profile_free(p);
}

static void colour_is_asked_for(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD);
    struct buf plain = screen(p, (struct rollup_options){.group = ROLLUP_BY_OWNER},
                              (struct report_options){.style = {.columns = 80}});
    struct buf colour = screen(p, (struct rollup_options){.group = ROLLUP_BY_OWNER},
                               (struct report_options){.style = {.columns = 80, .colour = true}});
    assert_null(strchr(buf_str(&plain), '\033'));
    assert_non_null(strchr(buf_str(&colour), '\033'));
    char *to = colour.data; /* without its colours it is the same */
    for (const char *from = colour.data; *from; from++)
        if (*from == '\033')
            from = strchr(from, 'm');
        else
            *to++ = *from;
    *to = '\0';
    assert_string_equal(buf_str(&plain), colour.data);
    buf_release(&plain);
    buf_release(&colour);
    profile_free(p);
}

static void report_of_ascii(void **state)
{
    (void)state;
    struct profile *p = processes();
    struct buf b = screen(p, (struct rollup_options){.group = ROLLUP_BY_STACK},
                          (struct report_options){.style = {.columns = 80}, .top = 1, .frames = 1});
    for (size_t i = 0; i < b.len; i++)
        assert_true((b.data[i] >= ' ' && b.data[i] <= '~') || b.data[i] == '\n');
    assert_non_null(strstr(buf_str(&b), "... 3 more frames"));
    buf_release(&b);
    profile_free(p);
}

static void losses_are_told(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD);
    for (int k = 0; k < PROFILE_LOSSES; k++)
        p->images.at[0].losses[k] = (uint64_t)(100 + k);
    uint32_t full = profile_string(p, "the memory cgroup is nearly full");
    p->images.at[0].ledger_full = full;
    p->images.at[0].torn_samples = 1;
    p->images.at[0].inconsistent = true;
    p->images.at[0].operations_begun = 7;
    p->images.at[0].operations_done = 5;
    p->images_dropped = 2;
    struct buf b = screen(p, (struct rollup_options){.group = ROLLUP_BY_OWNER},
                          (struct report_options){.style = {.columns = 0}});
    static const char *const said[] = {
        "  100 samples found no room",
        "  101 samples counted as allocated",
        "  102 frees bypassed the agent",
        "  103 stacks deeper than the limit",
        "  104 stacks could not be walked",
        "  105 samples of threads",
        "  106 refusals to let the ledger grow",
        "  107 starts of programs that cannot carry",
        "  108 requests for memory failed",
        "  109 objects of a parent",
        "stopped growing: the memory cgroup is nearly full.",
        "  1 live sample changed",
        "contained invalid records",
        "  2 operations under way",
        "  2 process images too many to store",
    };
    for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++)
        if (!strstr(buf_str(&b), said[i]))
            fail_msg("nothing says: %s", said[i]);
    assert_null(strstr(buf_str(&b), "  nothing\n"));
    buf_release(&b);
    profile_free(p);
}

static void resident_memory(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD);
    const struct rollup_options o = {.group = ROLLUP_BY_OWNER};
    const struct report_options options = {.style = {.columns = 0}};
    p->images.at[0].rss_anon_bytes = MIB;
    struct buf b = screen(p, o, options);
    assert_non_null(
        strstr(buf_str(&b), "are more than all of the 1 MiB of anonymous memory (RssAnon, as last seen)"));
    buf_release(&b);
    p->images.at[0].rss_anon_bytes = 0;
    b = screen(p, o, options);
    assert_non_null(strstr(buf_str(&b), "RssAnon is not known"));
    buf_release(&b);
    profile_free(p);
}

static const char past_screen[] =
    "shop (pid 4242), running then\n"
    "  shop.allium@1m\n"
    "  /opt/shop/bin/shop --listen 8080\n"
    "  began 2026-11-21 14:02:11 UTC; shown as of 60 s later\n"
    "  ages (-), temporary memory and later peaks are not known for a past moment\n"
    "  sampled every 512 KiB on average; in brackets the 95 % interval\n"
    "\n"
    "  live then  15.1 MiB (10.7–20.9) in 28.7k (9.50–89.8) objects\n"
    "  peak       -\n"
    "  allocated  69.3 MiB (59.6–80.5) in 239k (162–393) allocations\n"
    "  temporary  -\n"
    "\n"
    "Held then, by first function outside the C and C++ libraries\n"
    "      LIVE  SHARE  95 % INTERVAL  OBJECTS  ALLOCATED  FUNCTION    MODULE\n"
    "  8.03 MiB   53 %      4.60–13.0    2.06k   30.1 MiB  json_parse  libjson.so.1\n"
    "  … 3 more, together 47 %\n"
    "\n"
    "Lost by the end of the recording\n"
    "  nothing\n"
    "Cost of observing\n"
    "  113 samples, 25 live at that time; the report of the whole recording shows CPU time and ledger\n"
    "  size\n"
    "Not in these figures\n"
    "  Live 15.1 MiB (10.7–20.9) are 50 % of the 30 MiB of anonymous memory (RssAnon). The rest: free\n"
    "  memory that the allocator keeps, the program's own allocators, direct mmap, JIT code, thread\n"
    "  stacks.\n";

static void past_report(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD);
    send_back(p, 0);
    struct buf b = screen(p, (struct rollup_options){.group = ROLLUP_BY_OWNER},
                          (struct report_options){
                              .style = {.columns = 100, .utf8 = true}, .source = "shop.allium@1m", .top = 1});
    assert_text(&b, past_screen);
    struct sink out = sink_to_buf(&b);
    summary_write(&out, p, &utf8, NULL, NULL);
    assert_non_null(strstr(buf_str(&b), "\n  peak       -\n  live then"));
    assert_null(strstr(buf_str(&b), "temporary"));
    buf_release(&b);
    p->images.at[0].taken_ns = BEGAN; /* nothing was kept before that moment */
    b = screen(p, (struct rollup_options){.group = ROLLUP_BY_OWNER}, (struct report_options){.top = 1});
    assert_non_null(strstr(buf_str(&b), "1 process image had no snapshot yet"));
    buf_release(&b);
    profile_free(p);
}

static void filtered_to_nothing(void **state)
{
    (void)state;
    struct profile *p = shop(PERIOD);
    struct buf b = screen(p, (struct rollup_options){.group = ROLLUP_BY_STACK, .keep = keep_none},
                          (struct report_options){.filter = "where func:nobody"});
    assert_non_null(strstr(buf_str(&b), "  at exit    < 1.84 MiB in < 242k objects\n"
                                        "  peak       < 1.84 MiB at 14:03:12, 61 s after the start\n"
                                        "  allocated  < 1.84 MiB in < 242k allocations\n"
                                        "  temporary  < 1.84 MiB freed before"));
    buf_release(&b);
    profile_free(p);
    p = shop(1);
    b = screen(p, (struct rollup_options){.group = ROLLUP_BY_STACK, .keep = keep_none},
               (struct report_options){.filter = "where func:nobody"});
    assert_non_null(strstr(buf_str(&b), "  at exit    0 B in 0 objects\n"));
    buf_release(&b);
    profile_free(p);
}

static const char silent_screen[] =
    "nothing was sampled: run again with --period 1\n"
    "  sampled every 512 KiB on average: with 95 % certainty the program allocated at\n"
    "  most 1.84 MiB, too little for a sample to be likely; or it does not use\n"
    "  malloc, or started without the agent because its environment was cleared (env\n"
    "  -i, sudo), or found no room for a ledger.\n";

static void empty_report(void **state)
{
    (void)state;
    struct profile *p = profile_new();
    struct buf b = screen(p, (struct rollup_options){.group = ROLLUP_BY_STACK},
                          (struct report_options){.style = {.columns = 80}});
    assert_non_null(strstr(buf_str(&b), "nothing was sampled"));
    assert_null(strstr(buf_str(&b), "0 B"));
    assert_null(strstr(buf_str(&b), "at most"));
    struct sink out = sink_to_buf(&b);
    summary_write(&out, p, &utf8, NULL, NULL);
    p->period_bytes = PERIOD;
    buf_release(&b);
    b = screen(p, (struct rollup_options){.keep = keep_none},
               (struct report_options){.style = {.columns = 80}});
    assert_text(&b, silent_screen);
    summary_write(&out, p, &utf8, NULL, NULL);
    assert_non_null(strstr(buf_str(&b), "at most 1.84 MiB"));
    buf_release(&b);
    p->period_bytes = 1;
    b = screen(p, (struct rollup_options){.group = ROLLUP_BY_STACK}, (struct report_options){.top = 1});
    assert_non_null(strstr(buf_str(&b), "  exact: every allocation, but there was none; or it"));
    buf_release(&b);
    profile_free(p);
}

/* ---- the summary ---- */

static const char summary_screen[] =
    "allium: 5 process images, 1 running, 2m13s, sampled every 512 KiB on average\n"
    "  peak       54.2 MiB (45.1–64.8), each process at its own peak\n"
    "    held by     76 %  json_parse (parse.c)\n"
    "                19 %  std::map<std::string, I…:pair<std::string const, Item>&&) (cache.cc)\n"
    "               3.7 %  node_new (tree.c)\n"
    "  live       21.1 MiB (15.7–28.0) still held, 67 % by json_parse (parse.c)\n"
    "  churned    92.4 MiB (80.7–106) in 245k allocations, 18 % of it temporary\n"
    "  processes  shop (4242) 38.1 MiB, worker (5000) 4.02 MiB, worker (5001) 4.02 MiB, 9 more\n"
    "  lost       1 live sample could not be followed\n"
    "             7 process images were not stored: there were too many\n"
    "  next       allium report 'it'\\''s a shop.allium'\n";

static void summary(void **state)
{
    (void)state;
    struct profile *p = processes();
    struct buf b = BUF_INIT;
    struct sink out = sink_to_buf(&b);
    const struct text_style style = {.columns = 90, .utf8 = true};
    p->images.at[0].losses[PROFILE_LOST_LIVE] = 1;
    p->images_dropped = 7;
    summary_write(&out, p, &style, "it's a shop.allium", NULL);
    int lines = 0;
    for (size_t i = 0; i < b.len; i++)
        lines += b.data[i] == '\n';
    assert_true(lines <= 12);
    assert_text(&b, summary_screen);
    buf_release(&b);
    profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("the report of a sampled run, by stack", report_sampled),
        TEST("the report of an exact run, by function at the peak, in ASCII", report_exact),
        TEST("the report of several processes has the three largest", report_processes),
        TEST("no line of a report is wider than the terminal", report_fits),
        TEST("colour comes only when asked for, and changes nothing else", colour_is_asked_for),
        TEST("without UTF-8 a report is ASCII", report_of_ascii),
        TEST("every loss is told, and what to do about it", losses_are_told),
        TEST("live memory is set against RssAnon, if that is known", resident_memory),
        TEST("of a moment in the past, what is not known is not shown as a number", past_report),
        TEST("a filter that nothing fits leaves what may be there unseen", filtered_to_nothing),
        TEST("an empty profile has a report too", empty_report),
        TEST("the summary has a dozen lines, and says how to go on", summary),
    };
    return cmocka_run_group_tests(tests, use_utc, NULL);
}
