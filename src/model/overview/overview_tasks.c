/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of processes and of OOM kills. */
#include "model/overview/overview_tables.h"

#include "base/buf.h"

#define N(columns) (sizeof(columns) / sizeof(*(columns)))

enum process_column {
    PROCESS_PID,
    PROCESS_NAME,
    PROCESS_STATE,
    PROCESS_RSS,
    PROCESS_SWAP,
    PROCESS_ANON,
    PROCESS_FILE,
    PROCESS_SHMEM,
    PROCESS_HUGE,
    PROCESS_PSS,
    PROCESS_FAULTS,
    PROCESS_MAJOR,
    PROCESS_SIZE,
    PROCESS_THREADS,
    PROCESS_UID,
    PROCESS_NOTE,
    PROCESS_COMMAND,
};
static const struct table_column process_columns[] = {
    [PROCESS_PID] = {"pid", TABLE_PLAIN, TABLE_WHOLE},
    [PROCESS_NAME] = {"process", TABLE_PLAIN, TABLE_TEXT},
    [PROCESS_STATE] = {"state", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 1},
    [PROCESS_RSS] = {"rss", TABLE_BYTES, TABLE_WHOLE},
    [PROCESS_SWAP] = {"swap", TABLE_BYTES, TABLE_WHOLE},
    [PROCESS_ANON] = {"anon", TABLE_BYTES, TABLE_WHOLE},
    [PROCESS_FILE] = {"file", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 4},
    [PROCESS_SHMEM] = {"shmem", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 5},
    [PROCESS_HUGE] = {"hugetlb", TABLE_BYTES, TABLE_WHOLE, .hide_if_empty = true, .drop_rank = 3},
    [PROCESS_PSS] = {"pss", TABLE_BYTES, TABLE_WHOLE, .hide_if_empty = true},
    [PROCESS_FAULTS] = {"faults_per_s", TABLE_COUNT, TABLE_REAL, .drop_rank = 7},
    [PROCESS_MAJOR] = {"major_faults", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 1},
    [PROCESS_SIZE] = {"size", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 8},
    [PROCESS_THREADS] = {"threads", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 9},
    [PROCESS_UID] = {"uid", TABLE_PLAIN, TABLE_WHOLE, .drop_rank = 10},
    [PROCESS_NOTE] = {"note", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true, .drop_rank = 0},
    [PROCESS_COMMAND] = {"command", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 6},
};

static const char *note_of(const struct overview_process *p)
{
    return p->query_result == OVERVIEW_MUTE      ? "no answer"
           : p->query_result == OVERVIEW_REFUSED ? "not allowed"
                                                 : NULL;
}

static void add_process(struct table *t, const struct overview_process *p)
{
    char state[2] = {p->state, '\0'};
    table_row(t);
    table_whole(t, PROCESS_PID, (uint64_t)p->pid);
    table_text(t, PROCESS_NAME, p->name);
    table_text(t, PROCESS_STATE, state);
    table_whole(t, PROCESS_RSS, overview_process_rss(p));
    table_whole(t, PROCESS_SWAP, p->swap_bytes);
    table_whole(t, PROCESS_ANON, p->anon_bytes);
    table_whole(t, PROCESS_FILE, p->file_bytes);
    table_whole(t, PROCESS_SHMEM, p->shmem_bytes);
    if (p->huge_bytes)
        table_whole(t, PROCESS_HUGE, p->huge_bytes);
    if (p->pss_known)
        table_whole(t, PROCESS_PSS, p->pss_bytes);
    if (p->faults_per_s >= 0)
        table_real(t, PROCESS_FAULTS, p->faults_per_s);
    table_whole(t, PROCESS_MAJOR, p->major);
    table_whole(t, PROCESS_SIZE, p->size_bytes);
    table_whole(t, PROCESS_THREADS, p->threads);
    table_whole(t, PROCESS_UID, p->uid);
    table_text(t, PROCESS_NOTE, note_of(p));
    table_text(t, PROCESS_COMMAND, p->command);
}

struct table *overview_processes_table(const struct overview *m)
{
    struct table *t = table_new("processes", 1, process_columns, N(process_columns));
    vec_each (const struct overview_process, p, &m->processes)
        add_process(t, p);
    return t;
}

enum kill_column {
    KILL_AT,
    KILL_AGO,
    KILL_PID,
    KILL_NAME,
    KILL_ANON,
    KILL_FILE,
    KILL_SHMEM,
    KILL_TABLES,
    KILL_UID,
    KILL_ADJUST,
    KILL_TRIGGER,
    KILL_LIMIT,
    KILL_CGROUP,
};
static const struct table_column kill_columns[] = {
    [KILL_AT] = {"at", TABLE_INSTANT, TABLE_WHOLE, .drop_rank = 4},
    [KILL_AGO] = {"ago", TABLE_DURATION, TABLE_WHOLE},
    [KILL_PID] = {"pid", TABLE_PLAIN, TABLE_WHOLE},
    [KILL_NAME] = {"killed", TABLE_PLAIN, TABLE_TEXT},
    [KILL_ANON] = {"anon", TABLE_BYTES, TABLE_WHOLE},
    [KILL_FILE] = {"file", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 5},
    [KILL_SHMEM] = {"shmem", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 6},
    [KILL_TABLES] = {"page_tables", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 9},
    [KILL_UID] = {"uid", TABLE_PLAIN, TABLE_WHOLE, .drop_rank = 8},
    [KILL_ADJUST] = {"oom_score_adj", TABLE_PLAIN, TABLE_SIGNED, .drop_rank = 7},
    [KILL_TRIGGER] = {"asked", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 3},
    [KILL_LIMIT] = {"limit_of", TABLE_PLAIN, TABLE_TEXT, .drop_rank = 2},
    [KILL_CGROUP] = {"cgroup", TABLE_PLAIN, TABLE_TEXT},
};

static void add_kill(struct table *t, const struct overview_kill *k, uint64_t now_ns)
{
    table_row(t);
    if (k->at_ns) {
        table_whole(t, KILL_AT, k->at_ns);
        table_whole(t, KILL_AGO, now_ns > k->at_ns ? now_ns - k->at_ns : 0);
    }
    table_whole(t, KILL_PID, (uint64_t)k->pid);
    table_text(t, KILL_NAME, k->name);
    table_whole(t, KILL_ANON, k->anon_bytes);
    table_whole(t, KILL_FILE, k->file_bytes);
    table_whole(t, KILL_SHMEM, k->shmem_bytes);
    table_whole(t, KILL_TABLES, k->page_table_bytes);
    table_whole(t, KILL_UID, k->uid);
    table_signed(t, KILL_ADJUST, k->score_adjust);
    if (*k->trigger)
        table_text(t, KILL_TRIGGER, k->trigger);
    table_text(t, KILL_LIMIT, k->cgroup_limit ? "cgroup" : "machine");
    table_text(t, KILL_CGROUP, k->cgroup);
}

struct table *overview_kills_table(const struct overview *m, uint32_t top)
{
    struct table *t = table_new("oom_kills", 1, kill_columns, N(kill_columns));
    for (size_t i = m->kills.len; i-- > 0 && (!top || m->kills.len - i <= top);)
        add_kill(t, &m->kills.at[i], m->taken_ns);
    return t;
}
