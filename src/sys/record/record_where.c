/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/record_where.h"

#include <string.h>

#include "sys/record/kernel_capture.h"

#define ANSWERS_MAX (1u << 18) /* then they are asked for again */

/* As in tables of sys kmem, but for one object. */
enum column { CALL_SITE, FUNCTION, CACHE, ALLOCATED, REQUESTED, SLACK, GFP, COMM, PID, COLUMNS };

static const struct table_column columns[COLUMNS] = {
    [CALL_SITE] = {"call_site", TABLE_PLAIN, TABLE_TEXT},
    [FUNCTION] = {"function", TABLE_PLAIN, TABLE_TEXT},
    [CACHE] = {"cache", TABLE_PLAIN, TABLE_TEXT},
    [ALLOCATED] = {"allocated", TABLE_BYTES, TABLE_WHOLE},
    [REQUESTED] = {"requested", TABLE_BYTES, TABLE_WHOLE},
    [SLACK] = {"slack", TABLE_BYTES, TABLE_WHOLE},
    [GFP] = {"gfp", TABLE_PLAIN, TABLE_TEXT},
    [COMM] = {"comm", TABLE_PLAIN, TABLE_TEXT},
    [PID] = {"pid", TABLE_PLAIN, TABLE_WHOLE},
};

int record_where_init(struct record_where *w, const char *text, struct error *e)
{
    *w = (struct record_where){.one = NULL};
    int bad = table_query_init(&w->query, text, columns, COLUMNS, e);
    if (!bad && text)
        w->one = table_new("allocation", 1, columns, COLUMNS);
    return bad;
}

void record_where_release(struct record_where *w)
{
    table_query_release(&w->query);
    table_free(w->one);
    map_release(&w->answers);
}

static bool ask(struct record_where *w, const struct kernel_code_names *names, const struct kmem_event *e)
{
    struct table *t = w->one;
    table_clear(t);
    table_row(t);
    kernel_capture_put_name(t, CALL_SITE, names->add_call, names->arg, e->call_site);
    kernel_capture_put_name(t, FUNCTION, names->add_function, names->arg, e->call_site);
    if (*e->cache)
        table_text(t, CACHE, e->cache);
    table_whole(t, ALLOCATED, e->allocated_bytes);
    table_whole(t, REQUESTED, e->requested_bytes);
    table_whole(t, SLACK, e->allocated_bytes - e->requested_bytes);
    kernel_capture_put_name(t, GFP, names->add_gfp, names->arg, e->gfp);
    table_text(t, COMM, e->comm);
    table_whole(t, PID, (uint64_t)e->process);
    return table_query_fits(&w->query, t, 0);
}

bool record_where_fits(struct record_where *w, const struct kernel_code_names *names,
                       const struct kmem_event *e)
{
    struct {
        uint64_t call_site, requested_bytes, allocated_bytes, gfp;
        int64_t process;
        char comm[16], cache[64];
    } kind;
    if (!w->one)
        return true;
    memset(&kind, 0, sizeof(kind));
    kind.call_site = e->call_site;
    kind.requested_bytes = e->requested_bytes;
    kind.allocated_bytes = e->allocated_bytes;
    kind.gfp = e->gfp;
    kind.process = e->process;
    memcpy(kind.comm, e->comm, strnlen(e->comm, sizeof(kind.comm)));
    memcpy(kind.cache, e->cache, strnlen(e->cache, sizeof(kind.cache)));
    size_t answer = map_get(&w->answers, &kind, sizeof(kind));
    if (answer == MAP_NONE) {
        if (w->answers.len >= ANSWERS_MAX) {
            map_release(&w->answers);
            w->answers = (struct map){.len = 0};
        }
        answer = ask(w, names, e);
        map_put(&w->answers, &kind, sizeof(kind), answer, NULL);
    }
    return answer;
}
