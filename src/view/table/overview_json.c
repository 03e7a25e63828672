/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/table/overview_view.h"

#include "model/overview/overview_tables.h"
#include "view/formats/json.h"
#include "view/table/table_view.h"

static void write_table(struct json *j, struct table *t)
{
    table_view_json_rows(j, t->name, t);
    table_free(t);
}

/* Joins name and unit to the key of a figure: "free" and "_bytes". */
static const char *key_of(struct buf *b, const char *name, const char *unit)
{
    buf_reset(b);
    buf_printf(b, "%s%s", name, unit);
    return buf_str(b);
}

static void write_memory(struct json *j, const struct overview *m, struct buf *key)
{
    json_open(j, "memory", '{');
    for (int i = 0; i < OVERVIEW_MEMORY_KINDS; i++) {
        const char *name = key_of(key, overview_memory_names[i], "_bytes");
        if (overview_memory_has(m, (enum overview_memory)i))
            json_whole(j, name, m->memory[i]);
        else
            json_null(j, name);
    }
    json_close(j, '}');
}

static void write_activity(struct json *j, const struct overview *m, struct buf *key)
{
    json_open(j, "activity", '{');
    for (int i = 0; i < OVERVIEW_COUNTS; i++) {
        const struct overview_count_name *n = &overview_count_names[i];
        const char *name = key_of(key, n->key, n->bytes ? "_bytes" : "");
        if (overview_count_has(&m->counts, (enum overview_count)i))
            json_whole(j, name, m->counts.at[i]);
        else
            json_null(j, name);
    }
    json_close(j, '}');
    json_open(j, "rates", '{');
    for (int i = 0; i < OVERVIEW_COUNTS; i++) {
        const struct overview_count_name *n = &overview_count_names[i];
        const char *name = key_of(key, n->key, n->bytes ? "_bytes_per_s" : "_per_s");
        if (m->rate[i] >= 0)
            json_real(j, name, m->rate[i]);
        else
            json_null(j, name);
    }
    json_close(j, '}');
}

static void write_events(struct json *j, const struct overview *m)
{
    json_open(j, "perf_events", '{');
    for (unsigned i = 0; i < m->n_events; i++) {
        if (m->events[i].known && m->interval_ns)
            json_whole(j, m->events[i].key, m->events[i].count);
        else
            json_null(j, m->events[i].key);
    }
    json_close(j, '}');
}

static void write_notes(struct json *j, const struct overview *m)
{
    json_open(j, "notes", '[');
    vec_each (const struct overview_note, n, &m->notes) {
        json_open(j, NULL, '{');
        json_flag(j, "urgent", n->urgent);
        json_text(j, "text", n->text);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_open(j, "unknown", '[');
    vec_each (char *, text, &m->unknown)
        json_text(j, NULL, *text);
    json_close(j, ']');
}

void overview_json_write(struct sink *out, const struct overview *m, uint32_t top)
{
    struct json j = {.out = out, .line = true};
    struct buf key = BUF_INIT;
    json_open(&j, NULL, '{');
    json_text(&j, "schema", "allium-sys");
    json_whole(&j, "version", 1);
    json_text(&j, "host", m->host);
    json_text(&j, "kernel", m->release);
    json_instant(&j, "taken_ns", m->taken_ns);
    json_whole(&j, "since_boot_ns", m->boot_ns);
    if (m->interval_ns)
        json_whole(&j, "interval_ns", m->interval_ns);
    else
        json_null(&j, "interval_ns");
    write_notes(&j, m);
    write_memory(&j, m, &key);
    json_text(&j, "transparent_huge_pages", *m->thp ? m->thp : NULL);
    write_table(&j, overview_huge_table(m));
    write_table(&j, overview_swaps_table(m));
    write_table(&j, overview_zones_table(m));
    write_table(&j, overview_nodes_table(m));
    write_table(&j, overview_pressure_table(m));
    write_activity(&j, m, &key);
    write_events(&j, m);
    json_whole(&j, "all_processes", m->n_processes);
    json_whole(&j, "uninterruptible_tasks", m->n_stuck);
    write_table(&j, overview_processes_table(m));
    write_table(&j, overview_cgroups_table(m));
    write_table(&j, overview_slabs_table(m));
    write_table(&j, overview_kills_table(m, top));
    json_close(&j, '}');
    buf_release(&key);
}

static const char *answer_of(const struct overview_process *p)
{
    return p->query_result == OVERVIEW_ANSWERED  ? "answered"
           : p->query_result == OVERVIEW_MUTE    ? "no answer"
           : p->query_result == OVERVIEW_REFUSED ? "not allowed"
                                                 : "not asked";
}

static void write_sum(struct json *j, const struct mapping *sum, size_t n)
{
    json_open(j, "total", '{');
    json_whole(j, "mappings", n);
    json_whole(j, "size_bytes", sum->end);
    json_whole(j, "rss_bytes", sum->rss_bytes);
    json_whole(j, "pss_bytes", sum->pss_bytes);
    json_whole(j, "anon_bytes", sum->anon_bytes);
    json_whole(j, "swap_bytes", sum->swap_bytes);
    json_whole(j, "dirty_bytes", sum->dirty_bytes);
    json_close(j, '}');
}

void mappings_json_write(struct sink *out, uint64_t taken_ns, const struct overview_process *p,
                         const struct mappings *maps, uint32_t top)
{
    struct json j = {.out = out, .line = true};
    char state[2] = {p->state, '\0'};
    struct mapping sum;
    struct table *t = mappings_table(maps, top, &sum);
    json_open(&j, NULL, '{');
    json_text(&j, "schema", "allium-sys-process");
    json_whole(&j, "version", 1);
    json_instant(&j, "taken_ns", taken_ns);
    json_whole(&j, "pid", (uint64_t)p->pid);
    json_text(&j, "process", p->name);
    json_text(&j, "state", state);
    json_text(&j, "command", p->command);
    json_whole(&j, "rss_bytes", overview_process_rss(p));
    json_whole(&j, "anon_bytes", p->anon_bytes);
    json_whole(&j, "file_bytes", p->file_bytes);
    json_whole(&j, "shmem_bytes", p->shmem_bytes);
    json_whole(&j, "swap_bytes", p->swap_bytes);
    json_whole(&j, "hugetlb_bytes", p->huge_bytes);
    json_text(&j, "asked", answer_of(p));
    if (p->query_result == OVERVIEW_ANSWERED)
        write_sum(&j, &sum, maps->len);
    else
        json_null(&j, "total");
    table_view_json_rows(&j, "mappings", t);
    json_close(&j, '}');
    table_free(t);
}
