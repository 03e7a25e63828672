/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/tools/page_faults/faults_growth.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash_map.h"
#include "base/sigsafe/clock_ns.h"
#include "base/vec.h"
#include "collect/process/processes.h"

/* The kernel's MM_*: what is resident. Swapped pages are not. */
enum { FILE_PAGES, ANONYMOUS_PAGES, SWAPPED_PAGES, SHARED_PAGES, MEMBERS };

struct known {
    uint64_t began_ns; /* 0: before we did */
    uint64_t bytes[MEMBERS];
};

struct growth {
    uint64_t began_ns;
    struct map index; /* by pid */
    struct VEC(struct known) known;
};

static struct known *known_of(struct growth *g, uint32_t pid)
{
    bool added;
    size_t at = map_put(&g->index, &pid, sizeof(pid), g->known.len, &added);
    if (added)
        *vec_push(&g->known) = (struct known){0};
    return &g->known.at[at];
}

struct growth *growth_new(void)
{
    struct growth *g = mem_alloc(sizeof(*g));
    struct overview m = {0};
    *g = (struct growth){0};
    g->began_ns = clock_ns(CLOCK_MONOTONIC);
    processes_read(&m);
    vec_each (const struct overview_process, p, &m.processes) {
        struct known *k = known_of(g, (uint32_t)p->pid);
        k->bytes[FILE_PAGES] = p->file_bytes;
        k->bytes[ANONYMOUS_PAGES] = p->anon_bytes;
        k->bytes[SHARED_PAGES] = p->shmem_bytes;
    }
    overview_release(&m);
    return g;
}

void growth_free(struct growth *g)
{
    if (!g)
        return;
    map_release(&g->index);
    vec_release(&g->known);
    free(g);
}

int64_t growth_since(struct growth *g, uint32_t pid, const struct faults_resident *now)
{
    struct known *k = known_of(g, pid);
    uint64_t began_ns = now->began_ns > g->began_ns ? now->began_ns : 0;
    int64_t grown = 0;
    if (k->began_ns != began_ns) /* another process has the number by now */
        *k = (struct known){.began_ns = began_ns};
    for (unsigned i = 0; i < MEMBERS; i++) {
        uint64_t bytes = now->seen >> i & 1 ? now->bytes[i] : now->fresh ? 0 : k->bytes[i];
        if (i != SWAPPED_PAGES)
            grown += (int64_t)(bytes - k->bytes[i]);
        k->bytes[i] = bytes;
    }
    return grown;
}
