/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys brkstack`: which code grows the heap by brk(). */
#include "bpf/brkstack.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash_map.h"
#include "base/mem.h"
#include "base/read_file.h"
#include "base/sigsafe/clock_ns.h"
#include "collect/process/proc.h"
#include "sys/resolver.h"
#include "sys/tools/call_events.h"

enum column {
    PID,
    COMM,
    CONTAINER,
    CALLS,
    QUERIES,
    FAILED,
    GROWN,
    SHRUNK,
    NET,
    HEAP,
    DURATION,
    HISTOGRAM,
    USER_STACK,
    KERNEL_STACK
};

#define BIT(column) (1ull << (column))

static const struct table_column columns[] = {
    [PID] = {"pid", TABLE_PLAIN, TABLE_WHOLE},
    [COMM] = {"comm", TABLE_PLAIN, TABLE_TEXT},
    [CONTAINER] = {SYS_CONTAINER, .drop_rank = 1},
    [CALLS] = {"calls", TABLE_COUNT, TABLE_WHOLE},
    [QUERIES] = {"queries", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 3},
    [FAILED] = {"failed", TABLE_COUNT, TABLE_WHOLE},
    [GROWN] = {"grown", TABLE_BYTES, TABLE_WHOLE},
    [SHRUNK] = {"shrunk", TABLE_BYTES, TABLE_WHOLE},
    [NET] = {"net", TABLE_BYTES, TABLE_SIGNED},
    [HEAP] = {"heap", TABLE_BYTES, TABLE_WHOLE, .merge_largest = true},
    [DURATION] = {"duration", TABLE_DURATION, TABLE_WHOLE, .drop_rank = 2},
    [HISTOGRAM] = {"duration_histogram", TABLE_DURATION, TABLE_HISTOGRAM},
    [USER_STACK] = {"user_stack", TABLE_PLAIN, TABLE_LINES},
    [KERNEL_STACK] = {"kernel_stack", TABLE_PLAIN, TABLE_LINES},
};

/* ---- the size of the heap, as the process has it when a report is made ---- */

#define NO_HEAP UINT64_MAX /* not known */

/* By process: read once in each report. */
struct heaps {
    struct map index;
    struct VEC(uint64_t) bytes;
};

static void heaps_clear(struct heaps *h)
{
    map_release(&h->index);
    h->bytes.len = 0;
}

/* Returns where the heap begins, a field of /proc/PID/stat; 0: not known, because we may not read it. */
static uint64_t heap_start(uint32_t pid)
{
    enum { FIELDS_BEFORE = 44 }; /* behind the name of the program */
    struct buf text = BUF_INIT;
    char path[64];
    uint64_t start = 0;
    snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    if (!file_read(path, 4096, &text)) {
        const char *at = strrchr(buf_str(&text), ')');
        for (int i = 0; at && i <= FIELDS_BEFORE; i++)
            at = strchr(at + 1, ' ');
        start = at ? strtoull(at, NULL, 10) : 0;
    }
    buf_release(&text);
    return start;
}

/* The heap follows the program, so that few lines are read. Its last page may be in use only in part. */
static uint64_t heap_bytes(uint32_t pid)
{
    const uint64_t start = heap_start(pid);
    uint64_t end = start;
    char path[64], *line = NULL;
    size_t room = 0;
    snprintf(path, sizeof(path), "/proc/%u/maps", pid);
    FILE *maps = start ? fopen(path, "re") : NULL;
    if (!maps)
        return NO_HEAP;
    bool any = false;
    while (getline(&line, &room, maps) > 0) {
        unsigned long long from, to;
        if (sscanf(line, "%llx-%llx", &from, &to) != 2)
            break;
        any = true;
        if (from > end)
            break;
        if (strstr(line, "[heap]") && to > end)
            end = to;
    }
    free(line);
    fclose(maps);
    return any ? end - start : NO_HEAP;
}

/* Returns whether the process of that time has ended: another one may have its number now. */
static bool has_ended(uint32_t pid, uint64_t time_ns)
{
    const uint64_t offset = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
    char name[SYS_COMM_BYTES];
    uint64_t began_ns = 0;
    return !proc_runs((pid_t)pid) || !proc_thread((pid_t)pid, (pid_t)pid, name, sizeof(name), &began_ns) ||
           began_ns > time_ns + offset;
}

static uint64_t heap_of(struct sys_session *s, uint32_t pid, uint64_t time_ns)
{
    struct heaps *h = s->own;
    bool added;
    if (!pid || has_ended(pid, time_ns))
        return NO_HEAP;
    const size_t at = map_put_u64(&h->index, pid, h->bytes.len, &added);
    if (added)
        *vec_push(&h->bytes) = heap_bytes(pid);
    return h->bytes.at[at];
}

static int ready(struct sys_session *s, struct error *e)
{
    (void)e;
    s->own = mem_alloc(sizeof(struct heaps));
    return 0;
}

static void gather(struct sys_session *s)
{
    heaps_clear(s->own);
}

static void release(struct sys_session *s)
{
    struct heaps *h = s->own;
    if (!h)
        return;
    heaps_clear(h);
    vec_release(&h->bytes);
    free(h);
}

/* ---- rows ---- */

static void add(void *sum, const void *value)
{
    struct brkstack_sum *a = sum;
    const struct brkstack_sum *v = value;
    a->calls += v->calls;
    a->queries += v->queries;
    a->failed += v->failed;
    a->grown_bytes += v->grown_bytes;
    a->shrunk_bytes += v->shrunk_bytes;
    a->duration_ns += v->duration_ns;
    a->time_ns = v->time_ns > a->time_ns ? v->time_ns : a->time_ns;
}

/* For the default sort column: what one call has added to it. */
static uint64_t weigh(const void *value)
{
    const struct brkstack_sum *v = value;
    return v->grown_bytes;
}

static void row(struct sys_session *s, struct table *t, const void *key, const void *sum)
{
    const struct brkstack_sum *v = sum;
    const uint32_t parts = s->settings.config.parts;
    struct brkstack_key whole = {.pid = 0};
    memcpy(&whole, key, s->settings.part->key_bytes);
    table_row(t);
    table_text(t, COMM, whole.comm);
    if (parts & BRKSTACK_BY_PROCESS) {
        const uint64_t heap = heap_of(s, whole.pid, v->time_ns);
        table_whole(t, PID, whole.pid);
        if (heap != NO_HEAP)
            table_whole(t, HEAP, heap);
    }
    if (parts & BRKSTACK_BY_STACK) {
        resolver_user_stack(s, t, USER_STACK, whole.user_stack, whole.pid, v->time_ns);
        resolver_kernel_stack(s, t, KERNEL_STACK, whole.kernel_stack);
    }
    table_whole(t, CALLS, v->calls);
    table_whole(t, QUERIES, v->queries);
    table_whole(t, FAILED, v->failed);
    table_whole(t, GROWN, v->grown_bytes);
    table_whole(t, SHRUNK, v->shrunk_bytes);
    table_signed(t, NET, (int64_t)(v->grown_bytes - v->shrunk_bytes));
    table_whole(t, DURATION, v->duration_ns);
}

#define PROCESS (BIT(PID) | BIT(COMM) | BIT(CONTAINER) | BIT(HEAP))
#define STACKS  (BIT(USER_STACK) | BIT(KERNEL_STACK))

static const struct sys_part parts[] = {
    {"stack", "the whole stack, see --stacks, and its process",
     BRKSTACK_BY_COMM | BRKSTACK_BY_PROCESS | BRKSTACK_BY_STACK, sizeof(struct brkstack_key),
     PROCESS | STACKS, SYS_STACK_USER, .spaces = true, .names = BIT(PID) | BIT(COMM) | STACKS},
    {"process", "the process", BRKSTACK_BY_COMM | BRKSTACK_BY_PROCESS,
     offsetof(struct brkstack_key, kernel_stack), PROCESS, 0, .names = BIT(PID) | BIT(COMM)},
    {"comm", "the name of the process", BRKSTACK_BY_COMM, offsetof(struct brkstack_key, pid), BIT(COMM), 0,
     .names = BIT(COMM)},
    {NULL, NULL, 0, 0, 0, 0},
};

static const struct sys_counted counted[] = {CALL_COUNTED, {0, NULL, NULL, false}};

#define METHOD(way)                                                                                          \
    .attach = SYS_ATTACH({#way "_enter", "sys_enter", "regs,id", NULL},                                      \
                         {#way "_exit", "sys_exit", "regs,ret", NULL})

static const struct sys_attach_method methods[] = {
    {.name = "tp_btf", METHOD(btf)},
    {.name = "raw_tp", METHOD(raw)},
    {.name = NULL},
};

static const char *const examples[] = {
    "allium sys brkstack --comm redis-server",
    "show the stacks by which the heap grows and shrinks, and how large it is at the end",
    "allium sys brkstack --by process --interval 5s",
    "show every five seconds whose heap has grown, and by how much",
    "allium sys brkstack --sample 1 --folded -- ./server > heap.folded",
    "write the stacks that grow the heap, also of programs without frame pointers",
    NULL,
};

static const struct sys_measure measure = {.doc = "the duration of the calls", .column = HISTOGRAM};

static const char *const questions[] = {
    "Which code grows the heap by brk(), by how much, and does it give it back?",
    "Which processes have a large heap at the end? (--by process)",
    "Which calls fail, and how long do they take? (--hist)",
    NULL,
};

static const struct sys_explanation explanation = {
    .questions = questions,
    .event = "a call of brk()",
    .event_ns = 1750,
    .measured = "rows by stack; tp_btf, Linux 6.18 in a busy virtual machine",
    .unseen = "memory that malloc() takes by mmap(), see allium sys mmapsnoop",
};

SYS_OBJECT_OF(brkstack);

const struct sys_tool sys_brkstack = {
    .name = "brkstack",
    .summary = "show which code grows the heap by brk(), and by how much",
    .examples = examples,
    .explanation = &explanation,
    SYS_OBJECT(brkstack),
    .methods = methods,
    .columns = columns,
    .n_columns = sizeof(columns) / sizeof(*columns),
    .weight = GROWN,
    .measure = &measure,
    .container = CONTAINER,
    .parts = parts,
    .counted = counted,
    .key_bytes = sizeof(struct brkstack_key),
    .value_bytes = sizeof(struct brkstack_sum),
    .user_stack_at = offsetof(struct brkstack_key, user_stack),
    .add = add,
    .row = row,
    .weigh = weigh,
    .ready = ready,
    .gather = gather,
    .count_rest = call_events_count_rest,
    .release = release,
};
