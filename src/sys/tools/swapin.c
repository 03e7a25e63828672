/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys swapin`: who waits for swap. */
#include "bpf/swapin.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/read_file.h"
#include "collect/kernel/proc_text.h"
#include "sys/kernel_symbol_address.h"
#include "sys/resolver.h"
#include "sys/session.h"
#include "sys/tools/swap_areas.h"

enum column {
    PID,
    COMM,
    CONTAINER,
    CGROUP,
    AREA,
    FAULTS,
    CACHED,
    DURATION,
    MEAN,
    LONGEST,
    PAGES,
    FROM_DEVICE,
    FROM_ZRAM,
    FROM_ZSWAP,
    ZERO,
    UNKNOWN,
    READ_AHEAD,
    NO_FAULT,
    SHARE,
    SWAPPED,
    DELAYS,
    DELAY,
    HISTOGRAM
};

#define BIT(column) (1ull << (column))

static const struct table_column columns[] = {
    [PID] = {"pid", TABLE_PLAIN, TABLE_WHOLE},
    [COMM] = {"comm", TABLE_PLAIN, TABLE_TEXT},
    [CONTAINER] = {SYS_CONTAINER, .drop_rank = 1},
    [CGROUP] = {"cgroup", TABLE_PLAIN, TABLE_TEXT, .shrinkable = true},
    [AREA] = {"swap", TABLE_PLAIN, TABLE_TEXT, .shrinkable = true},
    [FAULTS] = {"faults", TABLE_COUNT, TABLE_WHOLE},
    [CACHED] = {"cached_faults", TABLE_COUNT, TABLE_WHOLE, "cached", .drop_rank = 5},
    [DURATION] = {"duration", TABLE_DURATION, TABLE_WHOLE},
    [MEAN] = {"mean", TABLE_DURATION, TABLE_WHOLE, .drop_rank = 3},
    [LONGEST] = {"longest", TABLE_DURATION, TABLE_WHOLE, .drop_rank = 6, .merge_largest = true},
    [PAGES] = {"pages", TABLE_COUNT, TABLE_WHOLE},
    [FROM_DEVICE] = {"device_pages", TABLE_COUNT, TABLE_WHOLE, "device", .drop_rank = 7},
    [FROM_ZRAM] = {"zram_pages", TABLE_COUNT, TABLE_WHOLE, "zram", .drop_rank = 8},
    [FROM_ZSWAP] = {"zswap_pages", TABLE_COUNT, TABLE_WHOLE, "zswap", .drop_rank = 9},
    [ZERO] = {"zero_pages", TABLE_COUNT, TABLE_WHOLE, "zero", .drop_rank = 10},
    [UNKNOWN] = {"unknown_pages", TABLE_COUNT, TABLE_WHOLE, "unknown", .hide_if_empty = true,
                 .drop_rank = 11},
    [READ_AHEAD] = {"read_ahead_pages", TABLE_COUNT, TABLE_WHOLE, "read_ahead", .drop_rank = 4},
    [NO_FAULT] = {"no_fault_pages", TABLE_COUNT, TABLE_WHOLE, "no_fault", .hide_if_empty = true,
                  .drop_rank = 12},
    [SHARE] = {"share", TABLE_PERCENT, TABLE_REAL, .hide_if_empty = true, .drop_rank = 13},
    [SWAPPED] = {"swapped", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 2},
    [DELAYS] = {"delays", TABLE_COUNT, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 14},
    [DELAY] = {"delay", TABLE_DURATION, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 14},
    [HISTOGRAM] = {"duration_histogram", TABLE_DURATION, TABLE_HISTOGRAM},
};

/* Pages, or faults that had to read where pages are not known. */
struct sum {
    uint64_t attributed, unattributed;
};

struct own {
    struct swap_areas areas;
    struct swap_totals from, to; /* when counting began; when it ended, or now */
    struct sum all, report;
    uint32_t first; /* row of the report in its table */
    uint32_t rows;
};

static const struct swap_area *area_of(const struct swap_areas *a, const struct swapin_file *f)
{
    if (f->inode)
        return swap_areas_find(a, f->device, f->inode);
    return a->all.len == 1 ? a->all.at : NULL; /* there was no other */
}

static bool is_loaded(const struct sys_session *s, const char *program)
{
    const struct bpf_program *p = bpf_object__find_program_by_name(s->object, program);
    return p && bpf_program__autoload(p);
}

/* "memory 4 70 1": without the controller the kernel does not tell its events. */
static bool counts_memory(void)
{
    struct buf text = BUF_INIT;
    char line[PROC_TEXT_BYTES];
    uint64_t hierarchy = 0, groups = 0, enabled = 1;
    file_read("/proc/cgroups", 1u << 16, &text);
    for (const char *next = buf_str(&text); proc_text_next(&next, line);) {
        const char *at = line + strlen("memory");
        if (!strncmp(line, "memory\t", strlen("memory\t")) && proc_text_number(&at, &hierarchy) &&
            proc_text_number(&at, &groups))
            proc_text_number(&at, &enabled);
    }
    buf_release(&text);
    return enabled;
}

static int ready(struct sys_session *s, struct error *e)
{
    if (!s->own)
        s->own = mem_alloc(sizeof(struct own));
    if (is_loaded(s, "btf_event") || is_loaded(s, "raw_event"))
        return counts_memory() ? 0 : error_set(e, EOPNOTSUPP, "the memory controller of cgroups is disabled");
    if (is_loaded(s, "perf_major"))
        return 0;
    uint64_t *address = sys_variable(s, "swap_info_address", sizeof(*address));
    *address = kernel_symbol_address("swap_info");
    if (!*address)
        return error_set(e, EOPNOTSUPP, "the address of swap_info is not known (CONFIG_KALLSYMS_ALL)");
    return 0;
}

static void release(struct sys_session *s)
{
    struct own *o = s->own;
    if (o)
        swap_areas_release(&o->areas);
    free(o);
    s->own = NULL;
}

static void counting(struct sys_session *s)
{
    struct own *o = s->own;
    swap_totals_read(s->until_ns ? &o->to : &o->from);
    swap_areas_read(&o->areas);
}

static void gather(struct sys_session *s)
{
    struct own *o = s->own;
    if (!s->until_ns)
        counting(s); /* areas may have come */
    o->report = (struct sum){0};
    o->rows = 0;
}

static void add(void *sum, const void *value)
{
    struct swapin_value *a = sum;
    const struct swapin_value *v = value;
    a->faults += v->faults;
    a->cached += v->cached;
    for (int i = 0; i < SWAPIN_SOURCES; i++)
        a->pages[i] += v->pages[i];
    a->read_ahead += v->read_ahead;
    a->no_fault += v->no_fault;
    a->timed += v->timed;
    a->duration_ns += v->duration_ns;
    a->longest_ns = v->longest_ns > a->longest_ns ? v->longest_ns : a->longest_ns;
    a->delays += v->delays;
    a->delay_ns += v->delay_ns;
}

/* What is still in swap of the process, unless another one has its number by now. */
static void add_swapped(struct table *t, const struct swapin_key *key)
{
    struct buf text = BUF_INIT;
    char path[64], line[PROC_TEXT_BYTES];
    uint64_t bytes;
    bool same = false;
    snprintf(path, sizeof(path), "/proc/%u/status", key->pid);
    file_read(path, 1u << 16, &text);
    for (const char *next = buf_str(&text); proc_text_next(&next, line);) {
        if (!strncmp(line, "Name:\t", strlen("Name:\t")))
            same = !strncmp(line + strlen("Name:\t"), key->comm, SYS_COMM_BYTES);
        if (same && proc_text_value(line, "VmSwap:", &bytes))
            table_whole(t, SWAPPED, bytes);
    }
    buf_release(&text);
}

static void name_area(struct table *t, const struct own *o, const struct swapin_file *f)
{
    const struct swap_area *area = area_of(&o->areas, f);
    char text[96];
    snprintf(text, sizeof(text), "inode %llu of device %u:%u", (unsigned long long)f->inode, f->device >> 20,
             f->device & 0xfffff);
    table_text(t, AREA, area ? area->path : f->inode ? text : NULL);
}

static void name_row(struct sys_session *s, struct table *t, const struct swapin_key *key)
{
    const uint32_t parts = s->settings.config.parts;
    if (parts & SWAPIN_BY_PROCESS) {
        table_whole(t, PID, key->pid);
        add_swapped(t, key);
    }
    if (parts & (SWAPIN_BY_PROCESS | SWAPIN_BY_COMM))
        table_text(t, COMM, key->comm);
    if (parts & SWAPIN_BY_DEVICE)
        name_area(t, s->own, &key->file);
    if (parts & SWAPIN_BY_CGROUP)
        resolver_cgroup(s, t, CGROUP, CONTAINER, key->cgroup);
}

/* Pages of a device or zram, when the attach method cannot tell which: it is known if all areas are alike. */
static void add_block(struct table *t, const struct own *o, const struct swapin_value *v)
{
    uint64_t block = v->pages[SWAPIN_BLOCK];
    size_t zram = 0;
    vec_each (const struct swap_area, area, &o->areas.all)
        zram += area->is_zram;
    if (block && zram && zram < o->areas.all.len)
        return;
    table_whole(t, FROM_DEVICE, v->pages[SWAPIN_DEVICE] + (zram ? 0 : block));
    table_whole(t, FROM_ZRAM, v->pages[SWAPIN_ZRAM] + (zram ? block : 0));
}

static uint64_t pages_of(const struct swapin_value *v)
{
    uint64_t pages = 0;
    for (int i = 0; i < SWAPIN_SOURCES; i++)
        pages += v->pages[i];
    return pages;
}

static void add_pages(struct sys_session *s, struct table *t, const struct swapin_value *v)
{
    if (s->lacking & BIT(PAGES))
        return;
    table_whole(t, PAGES, pages_of(v));
    add_block(t, s->own, v);
    if (!v->pages[SWAPIN_UNKNOWN]) {
        table_whole(t, FROM_ZSWAP, v->pages[SWAPIN_ZSWAP]);
        table_whole(t, ZERO, v->pages[SWAPIN_ZERO]);
    } else {
        table_whole(t, UNKNOWN, v->pages[SWAPIN_UNKNOWN]);
    }
    table_whole(t, READ_AHEAD, v->read_ahead);
    if (v->no_fault)
        table_whole(t, NO_FAULT, v->no_fault);
}

static void row(struct sys_session *s, struct table *t, const void *data, const void *sum)
{
    const struct swapin_value *v = sum;
    struct swapin_key key = {0};
    struct own *o = s->own;
    memcpy(&key, data, s->settings.part->key_bytes);
    table_row(t);
    if (!o->rows++)
        o->first = table_rows(t) - 1;
    name_row(s, t, &key);
    table_whole(t, FAULTS, v->faults);
    table_whole(t, CACHED, v->cached);
    if (v->timed || !v->faults)
        table_whole(t, DURATION, v->duration_ns);
    if (v->timed) {
        table_whole(t, MEAN, v->duration_ns / v->timed);
        table_whole(t, LONGEST, v->longest_ns);
    }
    add_pages(s, t, v);
    if (v->delays) {
        table_whole(t, DELAYS, v->delays);
        table_whole(t, DELAY, v->delay_ns);
    }
    o->report.attributed += s->lacking & BIT(PAGES) ? v->faults - v->cached : pages_of(v);
}

static uint64_t rise(uint64_t from, uint64_t to)
{
    return to > from ? to - from : 0;
}

/* Pages, or faults that had to read, by the kernel's own counts. */
static uint64_t counted_by_kernel(const struct sys_session *s)
{
    const struct own *o = s->own;
    uint64_t pages = rise(o->from.device, o->to.device) + rise(o->from.zswap, o->to.zswap) +
                     rise(o->from.zero, o->to.zero);
    uint64_t ahead = rise(o->from.read_ahead, o->to.read_ahead);
    return s->lacking & BIT(PAGES) ? rise(ahead, pages) : pages;
}

static void add_unattributed(struct sys_session *s, struct table *t, uint64_t n)
{
    static const char name[] = "[unattributed]";
    const uint32_t parts = s->settings.config.parts;
    struct own *o = s->own;
    table_row(t);
    if (!o->rows++)
        o->first = table_rows(t) - 1;
    table_text(t, parts & SWAPIN_BY_DEVICE ? AREA : parts & SWAPIN_BY_CGROUP ? CGROUP : COMM, name);
    table_whole(t, s->lacking & BIT(PAGES) ? FAULTS : PAGES, n);
}

/*
 * The kernel's totals are read a little later than the rows: a page of the time between belongs to no row until the
 * next report. So it is the sums over all reports that are compared.
 */
static void rest(struct sys_session *s, struct table *t)
{
    struct own *o = s->own;
    o->all.attributed += o->report.attributed;
    if (s->settings.config.filters)
        return;
    if (!s->until_ns)
        swap_totals_read(&o->to);
    o->report.unattributed = rise(o->all.attributed + o->all.unattributed, counted_by_kernel(s));
    o->all.unattributed += o->report.unattributed;
    if (o->report.unattributed)
        add_unattributed(s, t, o->report.unattributed);
    const double all = (double)(o->report.attributed + o->report.unattributed);
    for (uint32_t i = 0; all > 0 && i < o->rows; i++) {
        const uint32_t at = o->first + i;
        double part = table_number(t, at, s->lacking & BIT(PAGES) ? FAULTS : PAGES);
        const double cached = s->lacking & BIT(PAGES) ? table_number(t, at, CACHED) : 0;
        part -= cached > 0 ? cached : 0;
        *table_cell(t, at, SHARE) = (struct table_value){.known = true, .real = 100 * part / all};
    }
}

static void add_under_way(void *arg, const void *key, const void *value)
{
    const struct swapin_thread *thread = value;
    (void)key;
    *(uint64_t *)arg += thread->in_fault && thread->pages;
}

/* Once: the table is large. */
static void count_rest(struct sys_session *s)
{
    if (s->until_ns)
        sys_each(s, "threads", add_under_way, &s->counted[SWAPIN_UNDER_WAY]);
}

static void derive_again(struct table *t, uint32_t at)
{
    const double faults = table_number(t, at, FAULTS), duration = table_number(t, at, DURATION);
    if (faults > 0 && duration >= 0)
        *table_cell(t, at, MEAN) =
            (struct table_value){.known = true, .whole = (uint64_t)(duration / faults)};
    table_cell(t, at, SHARE); /* of another whole: not known */
}

static const struct sys_part parts[] = {
    {"process", "the process", SWAPIN_BY_PROCESS, offsetof(struct swapin_key, file),
     BIT(PID) | BIT(COMM) | BIT(CONTAINER) | BIT(SWAPPED), 0, .names = BIT(PID) | BIT(COMM)},
    {"comm", "the name of the process", SWAPIN_BY_COMM, offsetof(struct swapin_key, file), BIT(COMM), 0,
     .names = BIT(COMM)},
    {"device", "the device or file that is swapped to", SWAPIN_BY_DEVICE, offsetof(struct swapin_key, cgroup),
     BIT(AREA), 0, .names = BIT(AREA)},
    {"cgroup", "the cgroup of the process", SWAPIN_BY_CGROUP, sizeof(struct swapin_key),
     BIT(CGROUP) | BIT(CONTAINER), 0, .names = BIT(CGROUP)},
    {NULL, NULL, 0, 0, 0, 0},
};

static const struct sys_counted counted[] = {
    {SWAPIN_BEGUN_BEFORE, "fault{s} had begun before the tool, not counted", "begun_before", false},
    {SWAPIN_UNDER_WAY, "fault{s} had not ended at the end, not counted", "under_way", false},
    {SWAPIN_END_MISSED, "fault{s} whose end was not seen: counted without {its|their} duration",
     "ends_missed", false},
    {SWAPIN_REPLACED, "fault{s} not counted: another thread took {its|their} place", "replaced", true},
    {0, NULL, NULL, false},
};

#define NAMED(program)                                                                                       \
    {                                                                                                        \
        program, NULL, NULL, NULL                                                                            \
    }
/* Functions of this method. Those that read a page and that ask zswap have changed their names: the kernels are since
 * 6.7 or so, 6.6, and before. Kernels without zswap come last. */
#define WITH(method, begins, ends, ...)                                                                      \
    {                                                                                                        \
        .name = method, .attach = SYS_ATTACH(NAMED(begins "_fault"), NAMED(ends "_fault"),                   \
                                             NAMED(begins "_shared"), NAMED(ends "_shared"), __VA_ARGS__)    \
    }
#define FUNCTIONS(method, begins, ends)                                                                      \
    WITH(method, begins, ends, NAMED(begins "_read"), NAMED(ends "_read"), NAMED(ends "_zswap")),            \
        WITH(method, begins, ends, NAMED(begins "_readpage"), NAMED(ends "_readpage"),                       \
             NAMED(ends "_zswap")),                                                                          \
        WITH(method, begins, ends, NAMED(begins "_readpage"), NAMED(ends "_readpage"),                       \
             NAMED(ends "_frontswap")),                                                                      \
        WITH(method, begins, ends, NAMED(begins "_read"), NAMED(ends "_read")),                              \
        WITH(method, begins, ends, NAMED(begins "_readpage"), NAMED(ends "_readpage"))

#define EVENTS                                                                                               \
    .lacks = "the device of a page, if there are several; whether a page of the root cgroup was zero or in " \
             "zswap; "                                                                                       \
             "pages of shared memory that were in the swap cache"
#define FAULTS_ONLY                                                                                          \
    .lacks = "pages, and where they come from (this requires Linux 6.14, kprobes or fentry); read-ahead; "   \
             "faults of "                                                                                    \
             "which only the kernel knows; pages of shared memory that were in the swap cache",              \
    .lacking = BIT(PAGES) | BIT(FROM_DEVICE) | BIT(FROM_ZRAM) | BIT(FROM_ZSWAP) | BIT(ZERO) | BIT(UNKNOWN) | \
               BIT(READ_AHEAD) | BIT(NO_FAULT)

#define RAISED NAMED("raised_user"), NAMED("raised_kernel")

static const struct sys_attach_method methods[] = {
    FUNCTIONS("fentry", "fentry", "fexit"),
    FUNCTIONS("kprobe", "kprobe", "kretprobe"),
    {.name = "tp_btf",
     EVENTS,
     .attach = SYS_ATTACH({"btf_event", "count_memcg_events", "memcg,item,val", NULL},
                          {"btf_rss", "rss_stat", "mm,member", NULL}, RAISED)},
    {.name = "raw_tp",
     EVENTS,
     .attach = SYS_ATTACH({"raw_event", "count_memcg_events", "memcg,item,val", NULL},
                          {"raw_rss", "rss_stat", "mm,member", NULL}, RAISED)},
    {.name = "perf",
     FAULTS_ONLY,
     .attach = SYS_ATTACH({"raw_rss", "rss_stat", "mm,member", NULL}, RAISED,
                          {.program = "perf_minor", .software_event = PERF_COUNT_SW_PAGE_FAULTS_MIN},
                          {.program = "perf_major", .software_event = PERF_COUNT_SW_PAGE_FAULTS_MAJ})},
    {.name = NULL},
};

static const char *const examples[] = {
    "allium sys swapin",
    "show each second the processes that wait for pages of swap, how long, and where the pages come from",
    "allium sys swapin --by cgroup --duration 1m --interval 1m",
    "show the cgroups whose memory does not fit",
    "allium sys swapin --by device --hist --duration 10s --interval 10s",
    "show how long the faults for pages of each device took",
    NULL,
};

static const struct sys_measure measure = {.doc = "the duration of each page fault for a page of swap",
                                           .column = HISTOGRAM};

static const char *const questions[] = {
    "Which processes wait for swap, how often, and how long?",
    "Where do the pages come from: a device, zram, zswap, the swap cache? (--by device)",
    "How much of a process is still swapped out?",
    NULL,
};

static const struct sys_explanation explanation = {
    .questions = questions,
    .event = "each page fault and each change of what a process has in memory",
    .event_ns = 140,
    .measured = "the programs alone, by the kernel\'s clock; tp_btf, Linux 6.18 in a virtual machine",
    .unseen = "what the process would have done meanwhile; its memory that is not asked for stays in swap",
};

SYS_OBJECT_OF(swapin);

const struct sys_tool sys_swapin = {
    .name = "swapin",
    .summary = "show who waits for swap, how long, and where the pages come from",
    .examples = examples,
    .explanation = &explanation,
    SYS_OBJECT(swapin),
    .methods = methods,
    .columns = columns,
    .n_columns = sizeof(columns) / sizeof(*columns),
    .weight = DURATION,
    .measure = &measure,
    .container = CONTAINER,
    .interval_ns = 1000000000u,
    .parts = parts,
    .counted = counted,
    .key_bytes = sizeof(struct swapin_key),
    .value_bytes = sizeof(struct swapin_value),
    .add = add,
    .row = row,
    .derive_again = derive_again,
    .ready = ready,
    .counting = counting,
    .gather = gather,
    .rest = rest,
    .count_rest = count_rest,
    .release = release,
};
