/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/process/process_query.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/guard.h"
#include "base/read_file.h"
#include "base/sigsafe/clock_ns.h"
#include "collect/kernel/proc_text.h"

#define COMMAND_BYTES_MAX 512u
#define ROLLUP_BYTES_MAX  16384u
#define SMAPS_BYTES_MAX   (256u << 20) /* some 250,000 mappings with their figures */

/* A file that guard_run() reads in a thread. If the thread does not return in time, it keeps its text, which is never
 * freed. */
struct question {
    char path[64];
    size_t max;
    struct buf text;
    int bad;
};

static void read_answer(void *work)
{
    struct question *q = work;
    q->bad = file_read(q->path, q->max, &q->text);
}

static unsigned now_ms(void)
{
    return (unsigned)(clock_ns(CLOCK_MONOTONIC) / 1000000);
}

/* Returns a key of the process: pid and start, because another process may get the pid later. */
static uint64_t identity(const struct overview_process *p)
{
    return (uint64_t)p->pid << 40 ^ p->start_ticks;
}

void process_queryer_release(struct process_queryer *a)
{
    map_release(&a->mute);
}

/* Reads /proc/PID/NAME into `text`, which the caller releases. OVERVIEW_MUTE: no answer in time, now or earlier. */
static enum overview_query_result query_file(struct process_queryer *a, const struct overview_process *p,
                                             const char *name, size_t max, struct buf *text)
{
    struct question q = {.max = max};
    unsigned began = now_ms(), patience = a->each_ms < a->left_ms ? a->each_ms : a->left_ms;
    if (map_get_u64(&a->mute, identity(p)) != MAP_NONE)
        return OVERVIEW_MUTE;
    if (!patience)
        return OVERVIEW_NOT_QUERIED;
    snprintf(q.path, sizeof(q.path), "/proc/%d/%s", p->pid, name);
    int late = guard_run(read_answer, &q, sizeof(q), patience);
    unsigned took = now_ms() - began;
    a->left_ms -= took < a->left_ms ? took : a->left_ms;
    if (late) {
        /* If other processes had used up most of the time, this one might have answered within each_ms: it is tried
         * again in the next snapshot. */
        if (patience == a->each_ms)
            map_put_u64(&a->mute, identity(p), 1, NULL);
        return OVERVIEW_MUTE;
    }
    *text = q.text;
    return q.bad && q.bad != -EFBIG ? OVERVIEW_REFUSED : OVERVIEW_ANSWERED;
}

static void ask_command(struct process_queryer *a, struct overview_process *p)
{
    struct buf text = BUF_INIT;
    p->query_result = query_file(a, p, "cmdline", COMMAND_BYTES_MAX, &text);
    size_t len = text.len < COMMAND_BYTES_MAX ? text.len : COMMAND_BYTES_MAX;
    while (len && !text.data[len - 1])
        len--;
    for (size_t i = 0; i < len; i++)
        text.data[i] = text.data[i] ? text.data[i] : ' ';
    if (len)
        p->command = mem_strndup(text.data, len);
    buf_release(&text);
}

bool process_parse_rollup(const char *text, uint64_t *pss_bytes)
{
    char line[PROC_TEXT_BYTES];
    while (proc_text_next(&text, line))
        if (proc_text_value(line, "Pss", pss_bytes))
            return true;
    return false;
}

void process_query(struct process_queryer *a, struct overview_process *p, bool pss)
{
    struct buf text = BUF_INIT;
    ask_command(a, p);
    if (pss && p->query_result != OVERVIEW_MUTE) {
        p->query_result = query_file(a, p, "smaps_rollup", ROLLUP_BYTES_MAX, &text);
        p->pss_known =
            p->query_result == OVERVIEW_ANSWERED && process_parse_rollup(buf_str(&text), &p->pss_bytes);
    }
    buf_release(&text);
}

bool process_query_huge(struct process_queryer *a, const struct overview_process *p, uint64_t *anon_bytes)
{
    struct buf text = BUF_INIT;
    char line[PROC_TEXT_BYTES];
    bool found = false;
    if (query_file(a, p, "smaps_rollup", ROLLUP_BYTES_MAX, &text) == OVERVIEW_ANSWERED)
        for (const char *at = buf_str(&text); !found && proc_text_next(&at, line);)
            found = proc_text_value(line, "AnonHugePages", anon_bytes);
    buf_release(&text);
    return found;
}

static bool hex(const char **at, char end, uint64_t *value)
{
    char *behind;
    if (!isxdigit((unsigned char)**at))
        return false;
    *value = strtoull(*at, &behind, 16);
    *at = behind + 1;
    return *behind == end;
}

/* Parses the first line of a mapping: "55d0-55e0 r-xp 00000000 fe:00 123    /usr/bin/cat". */
static bool begins_mapping(const char *line, struct mapping *m)
{
    const char *at = line;
    char skip[64];
    *m = (struct mapping){.start = 0};
    if (!hex(&at, '-', &m->start) || !hex(&at, ' ', &m->end) || m->end <= m->start ||
        !proc_text_word(&at, m->access, sizeof(m->access)) || strspn(m->access, "rwxsp-") != 4)
        return false;
    for (int i = 0; i < 3; i++) /* offset, device, inode */
        if (!proc_text_word(&at, skip, sizeof(skip)))
            return false;
    m->name = mem_strdup(at + strspn(at, " "));
    return true;
}

static void add_to_mapping(struct mapping *m, const char *line)
{
    uint64_t value;
    (void)(proc_text_value(line, "Rss", &m->rss_bytes) || proc_text_value(line, "Pss", &m->pss_bytes) ||
           proc_text_value(line, "Anonymous", &m->anon_bytes) ||
           proc_text_value(line, "Swap", &m->swap_bytes) ||
           proc_text_value(line, "Locked", &m->locked_bytes));
    if (proc_text_value(line, "Private_Dirty", &value) || proc_text_value(line, "Shared_Dirty", &value))
        m->dirty_bytes += value;
    if (proc_text_value(line, "AnonHugePages", &value) || proc_text_value(line, "ShmemPmdMapped", &value) ||
        proc_text_value(line, "FilePmdMapped", &value) || proc_text_value(line, "Private_Hugetlb", &value) ||
        proc_text_value(line, "Shared_Hugetlb", &value))
        m->huge_bytes += value;
}

void mappings_parse(struct mappings *out, const char *text)
{
    char line[PROC_TEXT_BYTES];
    struct mapping m;
    while (proc_text_next(&text, line)) {
        if (begins_mapping(line, &m))
            *vec_push(out) = m;
        else if (out->len)
            add_to_mapping(&out->at[out->len - 1], line);
    }
}

void process_query_maps(struct process_queryer *a, struct overview_process *p, struct mappings *out)
{
    struct buf text = BUF_INIT;
    ask_command(a, p);
    if (p->query_result == OVERVIEW_MUTE)
        return;
    p->query_result = query_file(a, p, "smaps", SMAPS_BYTES_MAX, &text);
    if (p->query_result == OVERVIEW_ANSWERED)
        mappings_parse(out, buf_str(&text));
    buf_release(&text);
    vec_each (const struct mapping, m, out) {
        p->pss_bytes += m->pss_bytes;
        p->pss_known = true;
    }
}
