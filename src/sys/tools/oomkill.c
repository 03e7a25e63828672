/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys oomkill`: who triggered, who died, why. The words for people are in oomkill_text.c. */
#include "bpf/oomkill.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/event_columns.h"
#include "sys/kernel_symbol_address.h"
#include "sys/resolver.h"
#include "sys/tools/oomkill_text.h"

#define BIT(column) (1ull << (column))

enum column {
    OUTCOME = EVENT_COLUMNS_COLUMNS,
    VICTIM_PID,
    VICTIM_INNER_PID,
    VICTIM_COMM,
    VICTIM_UID,
    SCORE_ADJ,
    ANON,
    FILE_PAGES,
    SHMEM,
    SWAP,
    PAGE_TABLES,
    TOTAL_VM,
    APPROXIMATE,
    SHARING,
    VICTIM_CGROUP,
    VICTIM_CONTAINER,
    SCOPE,
    SCOPE_IS,
    MEMCG,
    LIMIT_OF,
    LIMIT,
    USAGE,
    SCOPE_TOTAL,
    ORDER,
    GFP,
    LOAD_1,
    LOAD_5,
    LOAD_15,
    LOAD_LATER,
    PROCESSES,
    PROCESSES_CUT,
    LARGEST,
    REPORT_TEXT,
    KERNEL_STACK,
    USER_STACK
};

static const struct table_column columns[] = {
    EVENT_COLUMNS_HEAD,
    [OUTCOME] = {"outcome", TABLE_PLAIN, TABLE_TEXT},
    [VICTIM_PID] = {"victim_pid", TABLE_PLAIN, TABLE_WHOLE},
    [VICTIM_INNER_PID] = {"victim_container_pid", TABLE_PLAIN, TABLE_WHOLE},
    [VICTIM_COMM] = {"victim_comm", TABLE_PLAIN, TABLE_TEXT},
    [VICTIM_UID] = {"victim_uid", TABLE_PLAIN, TABLE_WHOLE},
    [SCORE_ADJ] = {"oom_score_adj", TABLE_PLAIN, TABLE_SIGNED},
    [ANON] = {"anon", TABLE_BYTES, TABLE_WHOLE},
    [FILE_PAGES] = {"file", TABLE_BYTES, TABLE_WHOLE},
    [SHMEM] = {"shmem", TABLE_BYTES, TABLE_WHOLE},
    [SWAP] = {"swap", TABLE_BYTES, TABLE_WHOLE},
    [PAGE_TABLES] = {"page_tables", TABLE_BYTES, TABLE_WHOLE},
    [TOTAL_VM] = {"total_vm", TABLE_BYTES, TABLE_WHOLE},
    [APPROXIMATE] = {"approximate", TABLE_PLAIN, TABLE_FLAG},
    [SHARING] = {"sharing_processes", TABLE_PLAIN, TABLE_WHOLE},
    [VICTIM_CGROUP] = {"victim_cgroup", TABLE_PLAIN, TABLE_TEXT},
    [VICTIM_CONTAINER] = {"victim_container", TABLE_PLAIN, TABLE_TEXT},
    [SCOPE] = {"scope", TABLE_PLAIN, TABLE_TEXT},
    [SCOPE_IS] = {"scope_is", TABLE_PLAIN, TABLE_TEXT},
    [MEMCG] = {"memcg", TABLE_PLAIN, TABLE_TEXT},
    [LIMIT_OF] = {"limit_of", TABLE_PLAIN, TABLE_TEXT},
    [LIMIT] = {"limit", TABLE_BYTES, TABLE_WHOLE},
    [USAGE] = {"usage", TABLE_BYTES, TABLE_WHOLE},
    [SCOPE_TOTAL] = {"scope_total", TABLE_BYTES, TABLE_WHOLE},
    [ORDER] = {"order", TABLE_PLAIN, TABLE_SIGNED},
    [GFP] = {"gfp", TABLE_PLAIN, TABLE_TEXT},
    [LOAD_1] = {"load_1", TABLE_PLAIN, TABLE_REAL},
    [LOAD_5] = {"load_5", TABLE_PLAIN, TABLE_REAL},
    [LOAD_15] = {"load_15", TABLE_PLAIN, TABLE_REAL},
    [LOAD_LATER] = {"load_later", TABLE_DURATION, TABLE_WHOLE},
    [PROCESSES] = {"processes", TABLE_PLAIN, TABLE_WHOLE},
    [PROCESSES_CUT] = {"processes_cut", TABLE_PLAIN, TABLE_FLAG},
    [LARGEST] = {"largest", TABLE_PLAIN, TABLE_LINES,
                 .fields = "pid,comm:text,rss_bytes,swap_bytes,oom_score_adj,in_memcg"},
    [REPORT_TEXT] = {"story", TABLE_PLAIN, TABLE_LINES, .report_text = true},
    [KERNEL_STACK] = {"kernel_stack", TABLE_PLAIN, TABLE_LINES},
    [USER_STACK] = {"user_stack", TABLE_PLAIN, TABLE_LINES},
};

/* Before the programs are loaded. A kill that allium itself triggers is context like any other. */
static int ready(struct sys_session *s, struct error *e)
{
    struct sys_config *config = sys_variable(s, "config", sizeof(*config));
    uint32_t *cpus = sys_variable(s, "possible_cpus", sizeof(*cpus));
    uint64_t *loads = sys_variable(s, "avenrun_at", sizeof(*loads));
    int n = libbpf_num_possible_cpus();
    (void)e;
    config->own_tgid = 0;
    if (cpus)
        *cpus = n > 0 ? (uint32_t)n : 0;
    if (loads)
        *loads = kernel_symbol_address("avenrun");
    return 0;
}

static void path_text(struct table *t, uint32_t column, const struct oomkill_path *path)
{
    struct buf b = BUF_INIT;
    oomkill_add_path(&b, path);
    table_text(t, column, buf_str(&b));
    buf_release(&b);
}

static void put_victim(struct table *t, const struct oomkill_event *e)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    table_whole(t, VICTIM_PID, e->victim_pid);
    if (!e->victim_comm[0])
        return; /* only its number is known */
    table_text(t, OUTCOME, e->outcome == OOMKILL_KILLED ? "killed" : "exiting");
    table_text(t, VICTIM_COMM, e->victim_comm);
    if (e->victim_inner_pid)
        table_whole(t, VICTIM_INNER_PID, e->victim_inner_pid);
    table_whole(t, VICTIM_UID, e->victim_uid);
    table_signed(t, SCORE_ADJ, e->oom_score_adj);
    table_whole(t, ANON, (uint64_t)e->memory.anon_pages * page);
    table_whole(t, FILE_PAGES, (uint64_t)e->memory.file_pages * page);
    table_whole(t, SHMEM, (uint64_t)e->memory.shmem_pages * page);
    table_whole(t, SWAP, (uint64_t)e->memory.swap_pages * page);
    table_whole(t, PAGE_TABLES, e->page_table_bytes);
    table_whole(t, TOTAL_VM, e->total_vm_pages * page);
    table_flag(t, APPROXIMATE, e->approximate);
    table_whole(t, SHARING, e->sharing);
    path_text(t, VICTIM_CGROUP, &e->victim_cgroup);
    resolver_container_at(t, VICTIM_CONTAINER, table_at(t, table_rows(t) - 1, VICTIM_CGROUP)->text);
}

static void put_scope(struct sys_session *s, struct table *t, const struct oomkill_event *e)
{
    static const char *const scopes[] = {
        [OOMKILL_GLOBAL] = "global",
        [OOMKILL_CPUSET] = "cpuset",
        [OOMKILL_MEMPOLICY] = "mempolicy",
        [OOMKILL_MEMCG] = "memcg",
    };
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    table_text(t, SCOPE, scopes[e->scope & 3]);
    table_text(t, SCOPE_IS, e->exact ? "exact" : "inferred");
    if (e->scope == OOMKILL_MEMCG) {
        path_text(t, MEMCG, &e->memcg);
        table_text(t, LIMIT_OF, event_columns_limit_word(e->limit));
        if (e->limit_pages != OOMKILL_NO_LIMIT)
            table_whole(t, LIMIT, e->limit_pages * page);
        table_whole(t, USAGE, e->usage_pages * page);
    }
    if (!e->exact)
        return;
    table_whole(t, SCOPE_TOTAL, e->total_pages * page);
    table_signed(t, ORDER, e->order);
    resolver_gfp(s, t, GFP, e->gfp);
}

static void put_loads(struct table *t, const struct oomkill_event *e, struct oomkill_context *context)
{
    oomkill_loads(e, context);
    for (uint32_t i = 0; i < 3 && context->loads_known; i++)
        table_real(t, LOAD_1 + i, context->loads[i]);
    if (context->loads_known && context->loads_later_ns)
        table_whole(t, LOAD_LATER, context->loads_later_ns);
}

static void put_largest(struct table *t, const struct oomkill_context *context)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct buf b = BUF_INIT;
    for (uint32_t i = 0; i < context->n_largest; i++) {
        const struct oomkill_process *p = &context->largest[i];
        buf_printf(&b, "%" PRIu32 "\t", p->pid);
        oomkill_add_comm(&b, p->comm);
        buf_printf(&b, "\t%" PRIu64 "\t%" PRIu64 "\t%d\t%d\n", (uint64_t)oomkill_resident(p) * page,
                   (uint64_t)p->memory.swap_pages * page, p->oom_score_adj, p->in_memcg);
    }
    table_text(t, LARGEST, buf_str(&b));
    buf_release(&b);
}

/* To name them takes files and memory, which there is none of when the machine has none: then they stay addresses. */
static void put_user_stack(struct sys_session *s, struct table *t, const struct oomkill_event *e)
{
    uint64_t frames[SYS_STACK_DEPTH];
    struct buf b = BUF_INIT;
    if (e->scope == OOMKILL_MEMCG) {
        resolver_user_stack(s, t, USER_STACK, e->head.user_stack, e->head.task.pid, e->head.time_ns);
        return;
    }
    unsigned n = sys_stack_frames(s, e->head.user_stack, frames);
    for (unsigned i = 0; i < n; i++)
        buf_printf(&b, "0x%" PRIx64 "\n", frames[i]);
    table_text(t, USER_STACK, n ? buf_str(&b) : NULL);
    buf_release(&b);
}

static void event(struct sys_session *s, struct table *t, const void *data, size_t bytes)
{
    struct oomkill_context context;
    struct buf text = BUF_INIT;
    const struct oomkill_event *e = data;
    if (bytes < sizeof(*e))
        return;
    event_columns_row(s, t, &e->head);
    put_victim(t, e);
    put_scope(s, t, e);
    put_loads(t, e, &context);
    oomkill_largest(e, &context);
    if (context.n_largest)
        put_largest(t, &context);
    table_whole(t, PROCESSES, e->processes);
    table_flag(t, PROCESSES_CUT, e->walk_cut);
    uint32_t row = table_rows(t) - 1;
    context.gfp = table_at(t, row, GFP)->known ? table_at(t, row, GFP)->text : NULL;
    context.container =
        table_at(t, row, VICTIM_CONTAINER)->known ? table_at(t, row, VICTIM_CONTAINER)->text : NULL;
    oomkill_text(&text, e, &context);
    table_text(t, REPORT_TEXT, buf_str(&text));
    buf_release(&text);
    resolver_kernel_stack(s, t, KERNEL_STACK, e->head.kernel_stack);
    put_user_stack(s, t, e);
}

static const struct sys_counted counted[] = {
    {OOMKILL_UNKNOWN_VICTIM, "victim{s} of which only the process id is known", "unknown_victims", true},
    {OOMKILL_WALK_CUT, "kill{s} with more processes than were examined for the largest", "walks_cut", true},
    {OOMKILL_REQUESTS_FULL, "request{s} had no room: the scope of {its kill|their kills} is inferred",
     "requests_lost", true},
    {0, NULL, NULL, false},
};

#define MARKED     "mark_victim", "task,uid"
#define MARKED_PID "mark_victim", "pid" /* before 6.8 */
#define SIGNALLED  "signal_generate", "sig,info,task"

/* In the last two ways to attach the kernel reports the victim, and not the request. */
#define LACKS                                                                                                \
    "order and gfp of the request, the memory of the scope, or whether it is a cpuset, a mempolicy or "      \
    "global; the scope is inferred from the usage of memory cgroups"
#define LACKING (BIT(ORDER) | BIT(GFP) | BIT(SCOPE_TOTAL))

static const struct sys_attach_method methods[] = {
    {.name = "fentry",
     .attach = SYS_ATTACH({"fentry_begins", NULL, NULL, NULL}, {"fexit_ends", NULL, NULL, NULL},
                          {"btf_marked", MARKED, NULL}, {"btf_signalled", SIGNALLED, NULL})},
    {.name = "fentry",
     .attach = SYS_ATTACH({"fentry_begins", NULL, NULL, NULL}, {"fexit_ends", NULL, NULL, NULL},
                          {"raw_marked_pid", MARKED_PID, NULL}, {"btf_signalled", SIGNALLED, NULL})},
    {.name = "kprobe",
     .attach = SYS_ATTACH({"kprobe_begins", NULL, NULL, NULL}, {"kretprobe_ends", NULL, NULL, NULL},
                          {"raw_marked", MARKED, NULL}, {"raw_signalled", SIGNALLED, NULL})},
    {.name = "kprobe",
     .attach = SYS_ATTACH({"kprobe_begins", NULL, NULL, NULL}, {"kretprobe_ends", NULL, NULL, NULL},
                          {"raw_marked_pid", MARKED_PID, NULL}, {"raw_signalled", SIGNALLED, NULL})},
    {.name = "tp_btf",
     .lacks = LACKS,
     .lacking = LACKING,
     .attach = SYS_ATTACH({"btf_marked", MARKED, NULL}, {"btf_signalled", SIGNALLED, NULL})},
    {.name = "raw_tp",
     .lacks = LACKS,
     .lacking = LACKING,
     .attach = SYS_ATTACH({"raw_marked", MARKED, NULL}, {"raw_signalled", SIGNALLED, NULL})},
    {.name = "raw_tp",
     .lacks = LACKS,
     .lacking = LACKING,
     .attach = SYS_ATTACH({"raw_marked_pid", MARKED_PID, NULL}, {"raw_signalled", SIGNALLED, NULL})},
    {.name = NULL},
};

static const char *const examples[] = {
    "allium sys oomkill",
    "print each kill in a few lines: triggering task, victim, limit, largest processes",
    "allium sys oomkill --where 'scope = memcg' --json",
    "print kills at the limit of a memory cgroup as JSON",
    NULL,
};

static const struct table_column summary[MEASURE_COLUMNS] = {
    [MEASURE_ROWS] = {"events", TABLE_COUNT, TABLE_WHOLE},
    [MEASURE_TOTAL] = {"resident", TABLE_BYTES, TABLE_WHOLE},
    [MEASURE_MOST] = {"largest", TABLE_BYTES, TABLE_WHOLE},
    [MEASURE_HISTOGRAM] = {"resident_histogram", TABLE_BYTES, TABLE_HISTOGRAM},
};

static const struct sys_measure measure = {.doc = "the resident memory of each victim",
                                           .summary = summary,
                                           .columns = BIT(ANON) | BIT(FILE_PAGES) | BIT(SHMEM)};

static const char *const questions[] = {
    "Which process was killed for lack of memory, and which task requested the memory?",
    "Was the machine out of memory, or a cgroup at its limit, and which one?",
    "Which processes had the memory at that moment?",
    NULL,
};

static const struct sys_explanation explanation = {
    .questions = questions,
    .event = "an OOM kill",
    .unseen = "kills by programs such as systemd-oomd and earlyoom, which send a signal as any program does",
};

SYS_OBJECT_OF(oomkill);

const struct sys_tool sys_oomkill = {
    .name = "oomkill",
    .summary = "show OOM kills: triggering task, victim, reason",
    .examples = examples,
    .explanation = &explanation,
    SYS_OBJECT(oomkill),
    .methods = methods,
    .columns = columns,
    .n_columns = sizeof(columns) / sizeof(*columns),
    .weight = ANON,
    .measure = &measure,
    .counted = counted,
    .ring_bytes = 1u << 18,
    .event = event,
    .urgent = true,
    .stacks = SYS_STACK_KERNEL | SYS_STACK_USER,
    .ready = ready,
};
