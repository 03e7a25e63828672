/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/collect's readers of the kernel's texts: whatever they say, what is made of them holds together,
 * can be told in notes and tables, and is released.
 */
#include "require.h"

#include <stdint.h>
#include <string.h>

#include "collect/kernel/cgroup_memory.h"
#include "collect/kernel/kmsg.h"
#include "collect/kernel/meminfo.h"
#include "collect/kernel/proc_text.h"
#include "collect/process/process_query.h"
#include "collect/process/processes.h"
#include "model/overview/overview_tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_lists(const struct overview *m)
{
    vec_each (const struct overview_zone, z, &m->zones)
        require(z->managed_bytes && strnlen(z->name, sizeof(z->name)) < sizeof(z->name),
                "a zone that is none");
    vec_each (const struct overview_swap, s, &m->swaps)
        require(s->path && *s->path, "a swap without a path");
    vec_each (const struct overview_slab, s, &m->slabs)
        require(*s->name && !strchr(s->name, ' '), "a slab without a name");
    for (int i = 0; i < OVERVIEW_MEMORY_KINDS; i++)
        require(overview_memory_has(m, (enum overview_memory)i) || !m->memory[i],
                "an unknown figure that is not 0");
}

static void read_log(struct overview *m, const char *text)
{
    struct kmsg k = {.fd = -1};
    char line[PROC_TEXT_BYTES];
    while (proc_text_next(&text, line))
        kmsg_take(&k, line);
    vec_each (const struct overview_kill, kill, &k.kills) {
        require(kill->pid >= 0 && strnlen(kill->name, sizeof(kill->name)) < sizeof(kill->name),
                "a kill of nobody");
        struct overview_kill *copy = vec_push(&m->kills);
        *copy = *kill;
        copy->cgroup = kill->cgroup ? mem_strdup(kill->cgroup) : NULL;
        copy->at_ns = kill->boot_ns;
    }
    kmsg_close(&k);
}

static void read_processes(struct overview *m, const char *text)
{
    struct overview_process p = {.faults_per_s = -1};
    struct mappings maps = {0};
    struct mapping sum;
    bool is = process_parse_stat(&p, text);
    require(!is || p.pid > 0, "a process without a number");
    process_parse_status(&p, text);
    process_parse_rollup(text, &p.pss_bytes);
    *vec_push(&m->processes) = p;
    mappings_parse(&maps, text);
    vec_each (const struct mapping, map, &maps)
        require(map->end > map->start && strlen(map->access) == 4 && map->name, "a mapping that is none");
    mappings_sort(&maps);
    table_free(mappings_table(&maps, 3, &sum));
    mappings_release(&maps);
}

static void read_groups(struct overview *m, const char *text)
{
    struct overview_cgroup c = {.version = 1 + (text[0] & 1), .path = mem_strdup("/a")};
    cgroup_parse_stat(&c, text);
    cgroup_parse_kills(&c, text);
    *vec_push(&m->cgroups) = c;
}

static void tell(struct overview *m)
{
    table_free(overview_zones_table(m));
    table_free(overview_swaps_table(m));
    table_free(overview_slabs_table(m));
    table_free(overview_processes_table(m));
    table_free(overview_cgroups_table(m));
    table_free(overview_kills_table(m, 2));
    table_free(overview_pressure_table(m));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct overview m = {.taken_ns = UINT64_MAX / 2, .boot_ns = 2};
    struct overview_node n = {.id = 0};
    char *text = mem_strndup((const char *)data, size), word[8];
    meminfo_parse(&m, text);
    vmstat_parse(&m, text, 4096);
    zoneinfo_parse(&m, text, 4096);
    swaps_parse(&m, text);
    pressure_parse(&m.pressure[0], text);
    slabinfo_parse(&m, text, 4096);
    node_meminfo_parse(&n, text);
    node_numastat_parse(&n, text);
    chosen_parse(text, word, sizeof(word));
    read_log(&m, text);
    read_processes(&m, text);
    read_groups(&m, text);
    overview_since(&m, NULL);
    overview_account(&m);
    overview_note(&m);
    check_lists(&m);
    tell(&m);
    overview_release(&m);
    free(text);
    return 0;
}
