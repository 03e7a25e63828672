/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys hfaults`: who gets huge pages, and who asked for them in vain. */
#include "bpf/hfaults.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>

#include <bpf/btf.h>

#include "base/buf.h"
#include "collect/kernel/overview_read.h"
#include "collect/process/process_query.h"
#include "sys/attach_methods.h"
#include "sys/kernel_enums.h"
#include "sys/resolver.h"
#include "sys/session.h"
#include "sys/mapping_text.h"
#include "sys/tools/page_faults/hfaults_held.h"

enum column {
    PID,
    COMM,
    CONTAINER,
    CGROUP,
    CLASS,
    RESULT,
    MACHINE,
    FAULTS,
    HUGETLB_2M,
    HUGETLB_1G,
    HUGETLB_OTHER,
    HUGETLB_FAILED,
    THP,
    ZERO,
    FALLBACK,
    NO_PAGE,
    CHARGE,
    ASKED,
    SCANNED,
    COLLAPSED,
    NOT_COLLAPSED,
    SPLIT_PAGES,
    SPLIT_MAPPINGS,
    ZAPPED,
    ANON_HUGE,
    HUGETLB,
    POOL,
    POOL_FREE,
    POOL_RESERVED,
    POOL_SURPLUS,
    HISTOGRAM,
    USER_STACK,
    KERNEL_STACK
};

#define BIT(column) (1ull << (column))

#define NUMBER(name) name, TABLE_COUNT, TABLE_WHOLE

static const struct table_column columns[] = {
    [PID] = {"pid", TABLE_PLAIN, TABLE_WHOLE},
    [COMM] = {"comm", TABLE_PLAIN, TABLE_TEXT},
    [CONTAINER] = {SYS_CONTAINER, .drop_rank = 1},
    [CGROUP] = {"cgroup", TABLE_PLAIN, TABLE_TEXT},
    [CLASS] = {"class", TABLE_PLAIN, TABLE_TEXT},
    [RESULT] = {"result", TABLE_PLAIN, TABLE_TEXT},
    [MACHINE] = {"machine", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true},
    [FAULTS] = {NUMBER("faults"), .drop_rank = 12},
    [HUGETLB_2M] = {NUMBER("hugetlb_2m")},
    [HUGETLB_1G] = {NUMBER("hugetlb_1g"), .hide_if_empty = true},
    [HUGETLB_OTHER] = {NUMBER("hugetlb_other"), .hide_if_empty = true},
    [HUGETLB_FAILED] = {NUMBER("hugetlb_failed"), "failed"},
    [THP] = {NUMBER("thp")},
    [ZERO] = {NUMBER("zero_page"), "zero", .drop_rank = 5},
    [FALLBACK] = {NUMBER("fallback"), .drop_rank = 11},
    [NO_PAGE] = {NUMBER("no_huge_page"), "no_page"},
    [CHARGE] = {NUMBER("cgroup_limit"), "cgroup"},
    [ASKED] = {NUMBER("asked"), .drop_rank = 7},
    [SCANNED] = {NUMBER("scanned"), .drop_rank = 8},
    [COLLAPSED] = {NUMBER("collapsed")},
    [NOT_COLLAPSED] = {"not_collapsed", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true, .drop_rank = 4,
                       .merge_words = ';'},
    [SPLIT_PAGES] = {NUMBER("split_pages"), .hide_if_empty = true, .drop_rank = 2},
    [SPLIT_MAPPINGS] = {NUMBER("split_mappings"), .hide_if_empty = true, .drop_rank = 2},
    [ZAPPED] = {NUMBER("zapped"), .drop_rank = 6},
    [ANON_HUGE] = {"anon_huge", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 3, .merge_largest = true},
    [HUGETLB] = {"hugetlb", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 4, .merge_largest = true},
    [POOL] = {NUMBER("pool_pages"), "pool", .hide_if_empty = true, .merge_largest = true},
    [POOL_FREE] = {NUMBER("pool_free"), "free", .hide_if_empty = true, .merge_largest = true},
    [POOL_RESERVED] = {NUMBER("pool_reserved"), "reserved", .hide_if_empty = true, .drop_rank = 9,
                       .merge_largest = true},
    [POOL_SURPLUS] = {NUMBER("pool_surplus"), "surplus", .hide_if_empty = true, .drop_rank = 10,
                      .merge_largest = true},
    [HISTOGRAM] = {"duration_histogram", TABLE_DURATION, TABLE_HISTOGRAM},
    [USER_STACK] = {"user_stack", TABLE_PLAIN, TABLE_LINES},
    [KERNEL_STACK] = {"kernel_stack", TABLE_PLAIN, TABLE_LINES},
};

/* How long processes may take to tell what they hold: each, and all of a report. */
#define EACH_MS   100u
#define REPORT_MS 1000u

struct own {
    struct kernel_enums results;
    struct process_queryer queryer;
    struct huge_splits splits; /* at the last report */
    bool splits_known;
};

static void release(struct sys_session *s)
{
    struct own *o = s->own;
    if (o) {
        kernel_enums_release(&o->results);
        process_queryer_release(&o->queryer);
    }
    free(o);
    s->own = NULL;
}

static bool is_loaded(const struct sys_session *s, const char *program)
{
    const struct bpf_program *p = bpf_object__find_program_by_name(s->object, program);
    return p && bpf_program__autoload(p);
}

/* Where the kernel's event of a scan has the result. */
static int find_status(struct sys_session *s, struct error *e)
{
    struct btf *kernel = btf__load_vmlinux_btf();
    int at = kernel ? attach_method_argument(kernel, "mm_khugepaged_scan_pmd", "status") : -1;
    int file_at = kernel ? attach_method_argument(kernel, "mm_khugepaged_scan_file", "result") : -1;
    btf__free(kernel);
    if ((at != 4 && at != 5) || file_at != 5)
        return error_set(e, EOPNOTSUPP, "the results of mm_khugepaged_scan_* are other arguments here");
    *(uint32_t *)sys_variable(s, "status_at", sizeof(uint32_t)) = (uint32_t)at;
    return 0;
}

static int ready(struct sys_session *s, struct error *e)
{
    uint32_t order = huge_order_read();
    if (order)
        *(uint32_t *)sys_variable(s, "huge_order", sizeof(order)) = order;
    int error = is_loaded(s, "raw_scan_pmd") ? find_status(s, e) : 0;
    if (error || s->own)
        return error;
    struct own *o = mem_alloc(sizeof(*o));
    *o = (struct own){.queryer = {.each_ms = EACH_MS}};
    kernel_enums_load(&o->results, "scan_result", "SCAN_");
    o->splits_known = huge_splits_read(&o->splits);
    s->own = o;
    return 0;
}

static void gather(struct sys_session *s)
{
    struct own *o = s->own;
    o->queryer.left_ms = REPORT_MS;
}

static void add(void *sum, const void *value)
{
    struct hfaults_value *a = sum;
    const struct hfaults_value *v = value;
    for (unsigned i = 0; i < HFAULTS_MARKS; i++)
        a->marked[i] += v->marked[i];
    a->results |= v->results;
    a->time_ns = v->time_ns > a->time_ns ? v->time_ns : a->time_ns;
}

/* ---- a row ---- */

static void add_result(const struct own *o, struct buf *b, uint32_t result)
{
    const char *name = result < KERNEL_ENUMS_VALUES_MAX ? o->results.names[result] : NULL;
    if (name)
        buf_addstr(b, huge_result_words(name));
    else
        buf_printf(b, "result %u", result);
}

static void name_row(struct sys_session *s, struct table *t, const struct hfaults_key *key, uint64_t time_ns)
{
    const uint32_t parts = s->settings.config.parts;
    if (parts & HFAULTS_BY_PROCESS)
        table_whole(t, PID, key->pid);
    if (parts & (HFAULTS_BY_PROCESS | HFAULTS_BY_COMM))
        table_text(t, COMM, key->comm);
    if (parts & HFAULTS_BY_CLASS)
        table_text(t, CLASS, key->class < MAPPING_UNKNOWN ? mapping_text_class(key->class) : NULL);
    if (parts & HFAULTS_BY_CGROUP)
        resolver_cgroup(s, t, CGROUP, CONTAINER, key->cgroup);
    if (parts & HFAULTS_BY_RESULT && key->result) {
        struct buf b = BUF_INIT;
        add_result(s->own, &b, key->result - 1);
        table_text(t, RESULT, buf_str(&b));
        buf_release(&b);
    }
    if (parts & HFAULTS_BY_STACK) {
        resolver_user_stack(s, t, USER_STACK, key->user_stack, key->pid, time_ns);
        resolver_kernel_stack(s, t, KERNEL_STACK, key->kernel_stack);
    }
}

static void add_not_collapsed(struct sys_session *s, struct table *t, uint64_t results)
{
    struct buf b = BUF_INIT;
    for (uint32_t i = 0; i <= HFAULTS_RESULTS_MAX; i++)
        if (results >> i & 1) {
            buf_addstr(&b, b.len ? ";" : "");
            add_result(s->own, &b, i);
        }
    if (b.len)
        table_text(t, NOT_COLLAPSED, buf_str(&b));
    buf_release(&b);
}

/* What the process has now. It is in one row of the process, and not in its parts. */
static void add_held(struct sys_session *s, struct table *t, uint32_t pid)
{
    struct own *o = s->own;
    const struct overview_process process = {.pid = (int)pid};
    uint64_t bytes;
    if (s->settings.part != s->tool->parts || !pid)
        return;
    if (process_query_huge(&o->queryer, &process, &bytes))
        table_whole(t, ANON_HUGE, bytes);
    if (huge_hugetlb_read(pid, &bytes))
        table_whole(t, HUGETLB, bytes);
}

static void add_faults(struct table *t, const __u64 *marked)
{
    static const struct {
        enum column column;
        enum hfaults_mark mark;
    } shown[] = {
        {HUGETLB_2M, HFAULTS_HUGETLB_2M},
        {HUGETLB_1G, HFAULTS_HUGETLB_1G},
        {HUGETLB_OTHER, HFAULTS_HUGETLB_OTHER},
        {HUGETLB_FAILED, HFAULTS_HUGETLB_FAILED},
        {THP, HFAULTS_THP},
        {ZERO, HFAULTS_ZERO},
        {NO_PAGE, HFAULTS_NO_PAGE},
        {CHARGE, HFAULTS_CHARGE},
    };
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof(shown) / sizeof(*shown); i++) {
        const uint64_t n = marked[shown[i].mark];
        sum += n;
        if (n || !columns[shown[i].column].hide_if_empty)
            table_whole(t, shown[i].column, n);
    }
    table_whole(t, FAULTS, sum);
    table_whole(t, FALLBACK, marked[HFAULTS_NO_PAGE] + marked[HFAULTS_CHARGE]);
    table_whole(t, ASKED, marked[HFAULTS_ASKED]);
}

/* Does this way know whose huge pages are split? Else the machine's row has their sum. */
static bool knows_splits(const struct sys_session *s)
{
    return !(s->lacking & BIT(ZAPPED));
}

static void row(struct sys_session *s, struct table *t, const void *data, const void *sum)
{
    const struct hfaults_value *v = sum;
    struct hfaults_key key = {0};
    memcpy(&key, data, s->settings.part->key_bytes);
    table_row(t);
    name_row(s, t, &key, v->time_ns);
    add_faults(t, v->marked);
    table_whole(t, SCANNED, v->marked[HFAULTS_SCANNED]);
    table_whole(t, COLLAPSED, v->marked[HFAULTS_COLLAPSED]);
    add_not_collapsed(s, t, v->results);
    if (knows_splits(s)) {
        table_whole(t, SPLIT_PAGES, v->marked[HFAULTS_SPLIT_PAGE]);
        table_whole(t, SPLIT_MAPPINGS, v->marked[HFAULTS_SPLIT_MAPPING]);
        table_whole(t, ZAPPED, v->marked[HFAULTS_ZAPPED]);
    }
    add_held(s, t, key.pid);
}

/* ---- rows of the machine ---- */

static void add_splits(struct sys_session *s, struct table *t)
{
    struct own *o = s->own;
    struct huge_splits now;
    if (!o->splits_known || knows_splits(s) || !huge_splits_read(&now))
        return;
    if (now.pages != o->splits.pages || now.mappings != o->splits.mappings) {
        table_row(t);
        table_text(t, MACHINE, "all processes");
        table_whole(t, SPLIT_PAGES, now.pages - o->splits.pages);
        table_whole(t, SPLIT_MAPPINGS, now.mappings - o->splits.mappings);
    }
    o->splits = now;
}

static void add_pool(struct table *t, const struct overview_huge *h)
{
    struct buf b = BUF_INIT;
    if (h->size_bytes >> 30)
        buf_printf(&b, "pool of %llu GiB", (unsigned long long)(h->size_bytes >> 30));
    else if (h->size_bytes >> 20)
        buf_printf(&b, "pool of %llu MiB", (unsigned long long)(h->size_bytes >> 20));
    else
        buf_printf(&b, "pool of %llu KiB", (unsigned long long)(h->size_bytes >> 10));
    table_row(t);
    table_text(t, MACHINE, buf_str(&b));
    table_whole(t, POOL, h->total);
    table_whole(t, POOL_FREE, h->free);
    table_whole(t, POOL_RESERVED, h->reserved);
    table_whole(t, POOL_SURPLUS, h->surplus);
    buf_release(&b);
}

static void rest(struct sys_session *s, struct table *t)
{
    struct overview m = {0};
    const bool shows_nothing = s->settings.config.filters && !table_rows(t);
    add_splits(s, t);
    if (shows_nothing) /* of what was asked for */
        return;
    overview_read_huge(&m);
    vec_each (const struct overview_huge, h, &m.huge)
        if (h->total)
            add_pool(t, h);
    overview_release(&m);
}

/* ---- the tool ---- */

#define OF_PROCESS (BIT(PID) | BIT(COMM) | BIT(CONTAINER))
#define HELD       (BIT(ANON_HUGE) | BIT(HUGETLB))
#define NAMES      (BIT(PID) | BIT(COMM) | BIT(MACHINE))

static const struct sys_part parts[] = {
    {"process", "the process", HFAULTS_BY_PROCESS, offsetof(struct hfaults_key, result), OF_PROCESS | HELD, 0,
     .names = NAMES},
    {"comm", "the name of the process", HFAULTS_BY_COMM, offsetof(struct hfaults_key, result), BIT(COMM), 0,
     .names = BIT(COMM) | BIT(MACHINE)},
    {"class", "the kind of memory, and its process", HFAULTS_BY_PROCESS | HFAULTS_BY_CLASS,
     offsetof(struct hfaults_key, result), OF_PROCESS | BIT(CLASS), 0, .names = NAMES | BIT(CLASS)},
    {"result", "the result of each scan for a collapse, and its process",
     HFAULTS_BY_PROCESS | HFAULTS_BY_RESULT, offsetof(struct hfaults_key, kernel_stack),
     OF_PROCESS | BIT(RESULT), 0, .names = NAMES | BIT(RESULT)},
    {"stack", "the whole stack of a fault, see --stacks, and its process",
     HFAULTS_BY_PROCESS | HFAULTS_BY_STACK, offsetof(struct hfaults_key, cgroup),
     OF_PROCESS | BIT(USER_STACK) | BIT(KERNEL_STACK), SYS_STACK_USER,
     .names = NAMES | BIT(USER_STACK) | BIT(KERNEL_STACK)},
    {"cgroup", "the control group of the process", HFAULTS_BY_CGROUP, sizeof(struct hfaults_key),
     BIT(CGROUP) | BIT(CONTAINER), 0, .names = BIT(CGROUP) | BIT(CONTAINER) | BIT(MACHINE)},
    {NULL, NULL, 0, 0, 0, 0},
};

static const struct sys_counted counted[] = {
    {HFAULTS_OUTSIDE,
     "huge page{s} {was|were} allocated without a fault (MADV_COLLAPSE, write to shared memory, "
     "a pool that grows, memory requested in advance)",
     "outside_of_faults", false},
    {HFAULTS_UNENDED, "fault{s} whose end was missed", "unended", true},
    {0, NULL, NULL, false},
};

/* Before 6.1 there is no tree of mappings, in which an address is looked up. */
static const struct sys_without no_tree = {
    "mm_struct", "mm_mt", "faults of hugetlbfs, and which memory it was: this requires Linux 6.1",
    BIT(HUGETLB_2M) | BIT(HUGETLB_1G) | BIT(HUGETLB_OTHER) | BIT(HUGETLB_FAILED) | BIT(CLASS)};

#define IF_TRANSPARENT       "trace_event_raw_mm_khugepaged_scan_pmd"
#define ALLOCATION_ARGUMENTS "page,order,gfp_flags,migratetype"
#define BY_POSITION                                                                                          \
    {"raw_alloc", "mm_page_alloc", ALLOCATION_ARGUMENTS, NULL},                                              \
        {"raw_free", "mm_page_free", "page,order", NULL},                                                    \
        {"raw_scan_pmd", "mm_khugepaged_scan_pmd", "mm", IF_TRANSPARENT},                                    \
    {                                                                                                        \
        "raw_scan_file", "mm_khugepaged_scan_file", "mm", IF_TRANSPARENT                                     \
    }
#define FUNCTIONS(begin, end)                                                                                \
    {.program = begin "_fault"}, {.program = end "_fault"}, {.program = begin "_hugetlb"},                   \
        {.program = end "_hugetlb"}, {.program = end "_huge"}, {.program = begin "_split"},                  \
    {                                                                                                        \
        .program = end "_split"                                                                              \
    }
#define SPLITS(begin, end)                                                                                   \
    {.program = begin "_locked"}, {.program = begin "_page"},                                                \
    {                                                                                                        \
        .program = end "_page"                                                                               \
    }
#define SPLITS_BEFORE_6_9(begin, end)                                                                        \
    {.program = begin "_page_old"},                                                                          \
    {                                                                                                        \
        .program = end "_page_old"                                                                           \
    }
/* A kretprobe has room for so many calls at once, and misses others. */
#define KPROBE                                                                                               \
    .name = "kprobe",                                                                                        \
    .lacks = "faults during which more than ten threads, or two per CPU, wait in another one"
#define NO_FUNCTIONS                                                                                         \
    .lacks = "memory that is requested in advance (populate, pinned); the huge page of zeros; "              \
             "whose huge pages are zapped or split (the sum of splits has a row of its own)",                \
    .lacking = BIT(ASKED) | BIT(ZERO) | BIT(ZAPPED), .without = &no_tree

static const struct sys_attach_method methods[] = {
    {.name = "fexit",
     .attach = SYS_ATTACH(FUNCTIONS("fentry", "fexit"), {.program = "fexit_zap"}, SPLITS("fentry", "fexit"),
                          BY_POSITION)},
    {.name = "fexit",
     .attach = SYS_ATTACH(FUNCTIONS("fentry", "fexit"), {.program = "fexit_zap"},
                          SPLITS_BEFORE_6_9("fentry", "fexit"), BY_POSITION)},
    {KPROBE, .attach = SYS_ATTACH(FUNCTIONS("kprobe", "kretprobe"), {.program = "kprobe_zap"},
                                  SPLITS("kprobe", "kretprobe"), BY_POSITION)},
    {KPROBE, .attach = SYS_ATTACH(FUNCTIONS("kprobe", "kretprobe"), {.program = "kprobe_zap"},
                                  SPLITS_BEFORE_6_9("kprobe", "kretprobe"), BY_POSITION)},
    {.name = "perf",
     NO_FUNCTIONS,
     .attach = SYS_ATTACH({.program = "perf_minor", .software_event = PERF_COUNT_SW_PAGE_FAULTS_MIN},
                          {.program = "perf_major", .software_event = PERF_COUNT_SW_PAGE_FAULTS_MAJ},
                          {"raw_begin_user", "page_fault_user", "address", NULL},
                          {"raw_begin_kernel", "page_fault_kernel", "address", NULL},
                          {"raw_signal", "signal_generate", "sig,info,task", NULL}, BY_POSITION)},
    {.name = "tp",
     NO_FUNCTIONS,
     .attach = SYS_ATTACH({.program = "perf_minor", .software_event = PERF_COUNT_SW_PAGE_FAULTS_MIN},
                          {.program = "perf_major", .software_event = PERF_COUNT_SW_PAGE_FAULTS_MAJ},
                          {.program = "tp_begin_user"}, {.program = "tp_begin_kernel"},
                          {.program = "tp_signal"}, {.program = "tp_alloc"}, {.program = "tp_free"},
                          {.program = "tp_scan_pmd", .if_type = IF_TRANSPARENT},
                          {.program = "tp_scan_file", .if_type = IF_TRANSPARENT})},
    {.name = NULL},
};

static const char *const examples[] = {
    "allium sys hfaults --duration 10s",
    "show which processes get huge pages, which get small ones instead, and why",
    "allium sys hfaults --by result --interval 1m",
    "show every minute what khugepaged found in each process",
    "allium sys hfaults --where 'hugetlb_failed>0' --interval 1s",
    "show processes that find the pool of huge pages empty",
    NULL,
};

static const struct sys_measure measure = {
    .doc = "the duration of each fault, most of which is the time to clear the page", .column = HISTOGRAM};

static const char *const questions[] = {
    "Which processes get huge pages, and which want them and get small ones?",
    "Why did a fault or khugepaged fail to make a huge page? (--by result)",
    NULL,
};

static const struct sys_explanation explanation = {
    .questions = questions,
    .event = "each page fault, and each page that is allocated or freed",
    .event_ns = 100,
    .measured = "the programs alone, by the kernel\'s clock; perf, Linux 6.18 in a virtual machine",
    .unseen = "huge pages of sizes between a page and 2 MiB (mTHP)",
};

SYS_OBJECT_OF(hfaults);

const struct sys_tool sys_hfaults = {
    .name = "hfaults",
    .summary = "show huge page faults: hugetlb by size, transparent ones, fallbacks, collapses",
    .examples = examples,
    .explanation = &explanation,
    SYS_OBJECT(hfaults),
    .methods = methods,
    .columns = columns,
    .n_columns = sizeof(columns) / sizeof(*columns),
    .weight = FAULTS,
    .measure = &measure,
    .container = CONTAINER,
    .parts = parts,
    .counted = counted,
    .key_bytes = sizeof(struct hfaults_key),
    .value_bytes = sizeof(struct hfaults_value),
    .user_stack_at = offsetof(struct hfaults_key, user_stack),
    .add = add,
    .row = row,
    .gather = gather,
    .rest = rest,
    .ready = ready,
    .release = release,
};
