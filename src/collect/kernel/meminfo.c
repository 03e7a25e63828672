/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/meminfo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/kernel/proc_text.h"
#include "collect/kernel/slabinfo.h"

static const char *const keys[OVERVIEW_MEMORY_KINDS] = {
    [OVERVIEW_TOTAL] = "MemTotal",
    [OVERVIEW_FREE] = "MemFree",
    [OVERVIEW_AVAILABLE] = "MemAvailable",
    [OVERVIEW_BUFFERS] = "Buffers",
    [OVERVIEW_CACHED] = "Cached",
    [OVERVIEW_SWAP_CACHED] = "SwapCached",
    [OVERVIEW_ACTIVE_ANON] = "Active(anon)",
    [OVERVIEW_INACTIVE_ANON] = "Inactive(anon)",
    [OVERVIEW_ACTIVE_FILE] = "Active(file)",
    [OVERVIEW_INACTIVE_FILE] = "Inactive(file)",
    [OVERVIEW_UNEVICTABLE] = "Unevictable",
    [OVERVIEW_LOCKED] = "Mlocked",
    [OVERVIEW_SWAP_TOTAL] = "SwapTotal",
    [OVERVIEW_SWAP_FREE] = "SwapFree",
    [OVERVIEW_ZSWAP] = "Zswap", /* Linux 5.19 */
    [OVERVIEW_ZSWAPPED] = "Zswapped",
    [OVERVIEW_DIRTY] = "Dirty",
    [OVERVIEW_WRITEBACK] = "Writeback",
    [OVERVIEW_ANON] = "AnonPages",
    [OVERVIEW_MAPPED] = "Mapped",
    [OVERVIEW_SHMEM] = "Shmem",
    [OVERVIEW_KERNEL_RECLAIMABLE] = "KReclaimable",
    [OVERVIEW_SLAB_RECLAIMABLE] = "SReclaimable",
    [OVERVIEW_SLAB_UNRECLAIMABLE] = "SUnreclaim",
    [OVERVIEW_KERNEL_STACKS] = "KernelStack",
    [OVERVIEW_PAGE_TABLES] = "PageTables",
    [OVERVIEW_SECOND_PAGE_TABLES] = "SecPageTables", /* Linux 6.1 */
    [OVERVIEW_PER_CPU] = "Percpu",
    [OVERVIEW_VMALLOC] = "VmallocUsed",
    [OVERVIEW_COMMIT_LIMIT] = "CommitLimit",
    [OVERVIEW_COMMITTED] = "Committed_AS",
    [OVERVIEW_ANON_HUGE] = "AnonHugePages",
    [OVERVIEW_SHMEM_HUGE] = "ShmemHugePages",
    [OVERVIEW_FILE_HUGE] = "FileHugePages",
    [OVERVIEW_HUGETLB] = "Hugetlb",
};

void meminfo_parse(struct overview *m, const char *text)
{
    char line[PROC_TEXT_BYTES];
    uint64_t value;
    while (proc_text_next(&text, line))
        for (int i = 0; i < OVERVIEW_MEMORY_KINDS; i++)
            if (keys[i] && proc_text_value(line, keys[i], &value))
                overview_memory_set(m, (enum overview_memory)i, value);
}

void pressure_parse(struct overview_pressure *p, const char *text)
{
    char line[PROC_TEXT_BYTES];
    while (proc_text_next(&text, line)) {
        bool full = !strncmp(line, "full ", 5);
        struct overview_stall s = {.known = true, .last = -1};
        unsigned long long total;
        int end = 0;
        if (!full && strncmp(line, "some ", 5))
            continue;
        if (sscanf(line + 5, "avg10=%7lf avg60=%7lf avg300=%7lf total=%19llu%n", &s.avg10, &s.avg60,
                   &s.avg300, &total, &end) != 4 ||
            line[5 + end])
            continue;
        s.total_us = total;
        if (s.avg10 >= 0 && s.avg10 <= 100 && s.avg60 >= 0 && s.avg60 <= 100 && s.avg300 >= 0 &&
            s.avg300 <= 100)
            *(full ? &p->full : &p->some) = s;
    }
}

void swaps_parse(struct overview *m, const char *text)
{
    char line[PROC_TEXT_BYTES], path[PROC_TEXT_BYTES];
    bool first = true;
    while (proc_text_next(&text, line)) {
        struct overview_swap s = {.path = NULL};
        const char *at = line;
        if (first) {
            first = false; /* the line of headings */
            continue;
        }
        if (!proc_text_word(&at, path, sizeof(path)) || !proc_text_word(&at, s.type, sizeof(s.type)) ||
            !proc_text_number(&at, &s.size_bytes) || !proc_text_number(&at, &s.used_bytes))
            continue;
        s.size_bytes = proc_text_times(s.size_bytes, 1024);
        s.used_bytes = proc_text_times(s.used_bytes, 1024);
        s.priority = strtoll(at, NULL, 10);
        s.path = proc_text_unescape(path, strlen(path));
        *vec_push(&m->swaps) = s;
    }
}

void slabinfo_parse(struct overview *m, const char *text, uint64_t page_bytes)
{
    struct slab_caches caches = {.bad_lines = 0};
    slab_parse(&caches, text);
    vec_each (const struct slab_cache, c, &caches.all) {
        struct overview_slab s = {
            .bytes = proc_text_times(proc_text_times(c->slabs, c->pages_per_slab), page_bytes),
            .objects = c->objects,
            .active = c->active,
            .object_bytes = c->stride_bytes,
        };
        snprintf(s.name, sizeof(s.name), "%s", c->name);
        *vec_push(&m->slabs) = s;
    }
    slab_release(&caches);
}

void node_meminfo_parse(struct overview_node *n, const char *text)
{
    char line[PROC_TEXT_BYTES];
    while (proc_text_next(&text, line)) {
        const char *at = line;
        uint64_t id;
        if (strncmp(line, "Node ", 5))
            continue;
        at += 5;
        if (!proc_text_number(&at, &id) || *at != ' ')
            continue;
        at++;
        (void)(proc_text_value(at, "MemTotal", &n->total_bytes) ||
               proc_text_value(at, "MemFree", &n->free_bytes) ||
               proc_text_value(at, "AnonPages", &n->anon_bytes) ||
               proc_text_value(at, "FilePages", &n->file_bytes) ||
               proc_text_value(at, "Slab", &n->slab_bytes));
    }
}

void node_numastat_parse(struct overview_node *n, const char *text)
{
    char line[PROC_TEXT_BYTES];
    while (proc_text_next(&text, line))
        (void)(proc_text_value(line, "numa_hit", &n->hit) || proc_text_value(line, "numa_miss", &n->miss) ||
               proc_text_value(line, "numa_foreign", &n->foreign));
}

void chosen_parse(const char *text, char *out, size_t size)
{
    const char *begin = strchr(text, '['), *end = begin ? strchr(begin, ']') : NULL;
    out[0] = '\0';
    if (end)
        snprintf(out, size, "%.*s", (int)(end - begin - 1 < 4096 ? end - begin - 1 : 4096), begin + 1);
}
