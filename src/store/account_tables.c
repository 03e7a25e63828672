/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/account_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash_map.h"
#include "store/recording_reader.h"

#define PROCESS "account_process"
#define PLACE   "account_place"
#define COUNT   "account_count"

enum {
    P_KIND,
    P_IMAGE,
    P_PID,
    P_COMM,
    P_RUNNING,
    P_BEGAN,
    P_LOST,
    P_COLUMNS = P_LOST + ACCOUNT_LOST_VERSIONS
};
static const struct table_column process_columns[P_COLUMNS] = {
    [P_KIND] = {"kind", TABLE_PLAIN, TABLE_TEXT},
    [P_IMAGE] = {"image_id", TABLE_PLAIN, TABLE_WHOLE},
    [P_PID] = {"pid", TABLE_PLAIN, TABLE_WHOLE},
    [P_COMM] = {"comm", TABLE_PLAIN, TABLE_TEXT},
    [P_RUNNING] = {"running", TABLE_PLAIN, TABLE_FLAG},
    [P_BEGAN] = {"began", TABLE_INSTANT, TABLE_WHOLE},
    [P_LOST + ACCOUNT_LOST_PLACES] = {"lost_places", TABLE_COUNT, TABLE_WHOLE},
    [P_LOST + ACCOUNT_LOST_OBJECTS] = {"lost_objects", TABLE_COUNT, TABLE_WHOLE},
    [P_LOST + ACCOUNT_LOST_FREES] = {"lost_frees_unseen", TABLE_COUNT, TABLE_WHOLE},
    [P_LOST + ACCOUNT_LOST_RECORDS] = {"damaged_records", TABLE_COUNT, TABLE_WHOLE},
    [P_LOST + ACCOUNT_FOREIGN_FREES] = {"foreign_frees", TABLE_COUNT, TABLE_WHOLE},
};

enum { L_PLACE, L_IMAGE, L_CLASS, L_NAME, L_FUNCTION, L_FILE, L_LINE, L_MODULE, L_CODE, L_COPIES, L_COLUMNS };
static const struct table_column place_columns[L_COLUMNS] = {
    [L_PLACE] = {"place", TABLE_PLAIN, TABLE_WHOLE},
    [L_IMAGE] = {"image_id", TABLE_PLAIN, TABLE_WHOLE},
    [L_CLASS] = {"class", TABLE_PLAIN, TABLE_TEXT},
    [L_NAME] = {"name", TABLE_PLAIN, TABLE_TEXT},
    [L_FUNCTION] = {"function", TABLE_PLAIN, TABLE_TEXT},
    [L_FILE] = {"file", TABLE_PLAIN, TABLE_TEXT},
    [L_LINE] = {"line_number", TABLE_PLAIN, TABLE_WHOLE},
    [L_MODULE] = {"module", TABLE_PLAIN, TABLE_TEXT},
    [L_CODE] = {"code_address", TABLE_PLAIN, TABLE_ADDRESS},
    [L_COPIES] = {"copies", TABLE_COUNT, TABLE_WHOLE},
};

enum { C_PLACE, C_INEXACT, C_COUNTER, C_COLUMNS = C_COUNTER + ACCOUNT_COUNTERS };
static const struct table_column count_columns[C_COLUMNS] = {
    [C_PLACE] = {"place", TABLE_PLAIN, TABLE_WHOLE},
    [C_INEXACT] = {"inexact", TABLE_PLAIN, TABLE_FLAG},
    [C_COUNTER + ACCOUNT_ALLOCATED_CALLS] = {"made_calls", TABLE_COUNT, TABLE_WHOLE},
    [C_COUNTER + ACCOUNT_ALLOCATED_BYTES] = {"made", TABLE_BYTES, TABLE_WHOLE},
    [C_COUNTER + ACCOUNT_RELEASED_CALLS] = {"gone_calls", TABLE_COUNT, TABLE_WHOLE},
    [C_COUNTER + ACCOUNT_RELEASED_BYTES] = {"gone", TABLE_BYTES, TABLE_WHOLE},
    [C_COUNTER + ACCOUNT_ALLOCATED_USABLE] = {"made_usable", TABLE_BYTES, TABLE_WHOLE},
    [C_COUNTER + ACCOUNT_RELEASED_USABLE] = {"gone_usable", TABLE_BYTES, TABLE_WHOLE},
    [C_COUNTER + ACCOUNT_FREED_BY_SITE_CALLS] = {"freed_here_calls", TABLE_COUNT, TABLE_WHOLE},
    [C_COUNTER + ACCOUNT_FREED_BY_SITE_BYTES] = {"freed_here", TABLE_BYTES, TABLE_WHOLE},
    [C_COUNTER + ACCOUNT_FAILED] = {"failed", TABLE_COUNT, TABLE_WHOLE},
    [C_COUNTER + ACCOUNT_PEAK_BYTES] = {"peak", TABLE_BYTES, TABLE_WHOLE},
    [C_COUNTER + ACCOUNT_PEAK_HIGH_BYTES] = {"peak_high", TABLE_BYTES, TABLE_WHOLE},
};

/* ---- keeping ---- */

struct kept {
    uint64_t image_id, round;
    struct account_sum last;
};

struct accounts_keeper {
    struct recording *recording;
    const char *kind;
    struct map by_key; /* image and names -> index in `places` */
    struct VEC(struct kept) places;
    struct table *process, *place, *count; /* rows of one call */
    uint64_t round;
};

struct accounts_keeper *accounts_keeper_new(struct recording *r, const char *kind)
{
    struct accounts_keeper *k = mem_alloc(sizeof(*k));
    *k = (struct accounts_keeper){.recording = r,
                                  .kind = kind,
                                  .process = table_new(PROCESS, 1, process_columns, P_COLUMNS),
                                  .place = table_new(PLACE, 1, place_columns, L_COLUMNS),
                                  .count = table_new(COUNT, 1, count_columns, C_COLUMNS)};
    return k;
}

void accounts_keeper_free(struct accounts_keeper *k)
{
    if (!k)
        return;
    map_release(&k->by_key);
    vec_release(&k->places);
    table_free(k->process);
    table_free(k->place);
    table_free(k->count);
    free(k);
}

static void put_process(struct accounts_keeper *k, const struct account_process *p)
{
    struct table *t = k->process;
    table_row(t);
    table_text(t, P_KIND, k->kind);
    table_whole(t, P_IMAGE, p->image_id);
    table_whole(t, P_PID, (uint64_t)p->pid);
    table_text(t, P_COMM, p->comm);
    table_flag(t, P_RUNNING, p->alive);
    table_whole(t, P_BEGAN, p->began_ns);
    for (uint32_t i = 0; P_LOST + i < P_COLUMNS; i++)
        table_whole(t, P_LOST + i,
                    p->losses[i] + (i == ACCOUNT_LOST_PLACES ? p->losses[ACCOUNT_LOST_VERSIONS] : 0));
}

static void put_place(struct accounts_keeper *k, uint64_t number, uint64_t image_id,
                      const struct account_row *r, const struct alloc_texts *texts)
{
    struct table *t = k->place;
    table_row(t);
    table_whole(t, L_PLACE, number);
    table_whole(t, L_IMAGE, image_id);
    table_text(t, L_CLASS, alloc_texts_get(texts, r->key.class));
    table_text(t, L_NAME, alloc_texts_get(texts, r->key.name));
    table_text(t, L_FUNCTION, alloc_texts_get(texts, r->key.function));
    table_text(t, L_FILE, alloc_texts_get(texts, r->key.file));
    if (r->key.line)
        table_whole(t, L_LINE, r->key.line);
    table_text(t, L_MODULE, alloc_texts_get(texts, r->key.module));
    table_whole(t, L_CODE, r->code);
    table_whole(t, L_COPIES, r->copies);
}

static void put_count(struct accounts_keeper *k, uint64_t number, const struct account_sum *sum)
{
    table_row(k->count);
    table_whole(k->count, C_PLACE, number);
    table_flag(k->count, C_INEXACT, sum->inexact);
    for (uint32_t i = 0; i < ACCOUNT_COUNTERS; i++)
        table_whole(k->count, C_COUNTER + i, sum->of[i]);
}

/* Several keepers write to one recording, and a process may have accounts of both kinds: tags have odd numbers. */
static uint64_t first_number(const char *kind)
{
    return strcmp(kind, "tags") ? 2 : 1;
}

static uint64_t number_of(const struct accounts_keeper *k, size_t at)
{
    return at * 2 + first_number(k->kind);
}

static bool is_same(const struct account_sum *a, const struct account_sum *b)
{
    return !memcmp(a->of, b->of, sizeof(a->of)) && a->inexact == b->inexact;
}

/* Names may come late, from a server: then it is another place. */
static size_t find_place(struct accounts_keeper *k, const struct account_process *p,
                         const struct account_row *r, const struct alloc_texts *texts)
{
    const uint32_t parts[] = {r->key.class, r->key.name, r->key.function, r->key.file, r->key.module};
    struct buf key = BUF_INIT;
    bool added;
    buf_add(&key, &p->image_id, sizeof(p->image_id));
    buf_add(&key, &r->key.line, sizeof(r->key.line));
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        const char *text = alloc_texts_get(texts, parts[i]);
        buf_addstr(&key, text ? text : "");
        buf_addch(&key, '\0');
    }
    size_t at = map_put(&k->by_key, buf_str(&key), key.len, k->places.len, &added);
    buf_release(&key);
    if (added) {
        vec_push(&k->places)->image_id = p->image_id;
        put_place(k, number_of(k, at), p->image_id, r, texts);
    }
    return at;
}

static int put_tables(struct accounts_keeper *k, uint64_t time_ns, struct error *e)
{
    struct table *tables[] = {k->process, k->place, k->count};
    int bad = 0;
    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
        bad = bad ? bad : recording_put_rows(k->recording, tables[i]->name, tables[i], time_ns, e);
        table_clear(tables[i]);
    }
    return bad;
}

/* So that it is known without reading on. */
static int put_fact(struct accounts_keeper *k, struct error *e)
{
    struct buf key = BUF_INIT;
    buf_printf(&key, RECORDING_ACCOUNTS "%s", k->kind);
    int bad = recording_set_number(k->recording, buf_str(&key), 1, e);
    buf_release(&key);
    return bad;
}

int accounts_keeper_put(struct accounts_keeper *k, const struct accounts *a, const struct alloc_texts *texts,
                        struct error *e)
{
    const struct account_process *p = a->processes.at;
    int bad = k->round++ ? 0 : put_fact(k, e);
    put_process(k, p);
    vec_each (const struct account_row, r, &a->rows) {
        const struct account_sum *now = &r->of[ACCOUNT_AFTER];
        size_t at = find_place(k, p, r, texts);
        struct kept *kept = &k->places.at[at];
        kept->round = k->round;
        if (!is_same(&kept->last, now))
            put_count(k, number_of(k, at), now);
        kept->last = *now;
    }
    for (size_t i = 0; i < k->places.len; i++) {
        static const struct account_sum none = {{0}};
        struct kept *kept = &k->places.at[i];
        if (kept->image_id != p->image_id || kept->round == k->round || is_same(&kept->last, &none))
            continue;
        put_count(k, number_of(k, i), &none);
        kept->last = none;
    }
    return bad ? bad : put_tables(k, p->taken_ns, e);
}

/* ---- reading ---- */

struct load {
    struct accounts *to;
    struct alloc_texts *texts;
    const char *kind;
    uint64_t until;
    struct table *t;
    struct map processes; /* image -> index in to->processes */
    struct map counts;    /* place -> index in `sums` */
    struct VEC(struct account_sum) sums;
    struct map places; /* those that were seen */
    uint64_t damaged;
};

static uint64_t whole_at(const struct table *t, uint32_t row, uint32_t column)
{
    const struct table_value *v = table_at(t, row, column);
    return v->known ? v->whole : 0;
}

static const char *text_at(const struct table *t, uint32_t row, uint32_t column)
{
    const struct table_value *v = table_at(t, row, column);
    return v->known ? v->text : "";
}

static void take_process(struct load *l, uint32_t row, uint64_t time_ns)
{
    bool added;
    uint64_t image = whole_at(l->t, row, P_IMAGE);
    if (strcmp(text_at(l->t, row, P_KIND), l->kind) != 0)
        return;
    size_t at = map_put_u64(&l->processes, image, l->to->processes.len, &added);
    struct account_process *p = added ? vec_push(&l->to->processes) : &l->to->processes.at[at];
    *p = (struct account_process){.image_id = image,
                                  .began_ns = whole_at(l->t, row, P_BEGAN),
                                  .taken_ns = time_ns,
                                  .pid = (int32_t)whole_at(l->t, row, P_PID)};
    p->alive = table_at(l->t, row, P_RUNNING)->known && table_at(l->t, row, P_RUNNING)->flag;
    strncpy(p->comm, text_at(l->t, row, P_COMM), sizeof(p->comm) - 1);
    for (uint32_t i = 0; P_LOST + i < P_COLUMNS; i++)
        p->losses[i] = whole_at(l->t, row, P_LOST + i);
}

static void take_count(struct load *l, uint32_t row, uint64_t time_ns)
{
    (void)time_ns;
    bool added;
    size_t at = map_put_u64(&l->counts, whole_at(l->t, row, C_PLACE), l->sums.len, &added);
    struct account_sum *sum = added ? vec_push(&l->sums) : &l->sums.at[at];
    const struct table_value *inexact = table_at(l->t, row, C_INEXACT);
    *sum = (struct account_sum){.places = 1, .inexact = inexact->known && inexact->flag};
    for (uint32_t i = 0; i < ACCOUNT_COUNTERS; i++)
        sum->of[i] = whole_at(l->t, row, C_COUNTER + i);
}

static uint32_t put_text(struct load *l, uint32_t row, uint32_t column)
{
    return alloc_texts_put_string(l->texts, text_at(l->t, row, column));
}

/* Processes and counters have been read: of another kind, or later than what is asked for, there are none. */
static void take_place(struct load *l, uint32_t row, uint64_t time_ns)
{
    static const struct account_sum none = {.places = 1};
    bool added;
    uint64_t place = whole_at(l->t, row, L_PLACE);
    size_t of = map_get_u64(&l->processes, whole_at(l->t, row, L_IMAGE)), at = map_get_u64(&l->counts, place);
    (void)time_ns;
    if (of == MAP_NONE || at == MAP_NONE || place % 2 != first_number(l->kind) % 2)
        return;
    const struct account_process *p = &l->to->processes.at[of];
    const struct account_sum *sum = &l->sums.at[at];
    map_put_u64(&l->places, place, 0, &added);
    l->damaged += !added;
    if (!added || is_same(sum, &none))
        return;
    struct account_key key = {.class = put_text(l, row, L_CLASS),
                              .name = put_text(l, row, L_NAME),
                              .function = put_text(l, row, L_FUNCTION),
                              .file = put_text(l, row, L_FILE),
                              .line = (uint32_t)whole_at(l->t, row, L_LINE),
                              .module = put_text(l, row, L_MODULE),
                              .comm = alloc_texts_put(l->texts, p->comm, strlen(p->comm)),
                              .pid = (uint32_t)p->pid};
    *vec_push(&l->to->rows) = (struct account_row){.key = key,
                                                   .code = whole_at(l->t, row, L_CODE),
                                                   .copies = (uint32_t)whole_at(l->t, row, L_COPIES),
                                                   .of[ACCOUNT_AFTER] = *sum};
}

typedef void take_fn(struct load *l, uint32_t row, uint64_t time_ns);

struct taking {
    struct load *l;
    take_fn *take;
};

/* The rows of one time, which need not be kept. */
static void take_rows(void *arg, uint64_t time_ns)
{
    const struct taking *k = arg;
    for (uint32_t row = 0; time_ns <= k->l->until && row < table_rows(k->l->t); row++)
        k->take(k->l, row, time_ns);
    table_clear(k->l->t);
}

static int load_table(struct load *l, struct reader *r, const char *name, const struct table_column *columns,
                      uint32_t n, take_fn *take, struct error *e)
{
    struct taking k = {l, take};
    l->t = table_new(name, 1, columns, n);
    int bad = reader_load_rows(r, name, l->t, take_rows, &k, e);
    table_free(l->t);
    return bad;
}

int reader_load_accounts(struct reader *r, struct accounts *a, struct alloc_texts *texts, const char *kind,
                         const uint64_t *at_ns, struct error *e)
{
    struct load l = {.to = a, .texts = texts, .kind = kind, .until = at_ns ? *at_ns : UINT64_MAX};
    *a = (struct accounts){.rows = {0}};
    int bad = load_table(&l, r, PROCESS, process_columns, P_COLUMNS, take_process, e);
    bad = bad ? bad : load_table(&l, r, COUNT, count_columns, C_COLUMNS, take_count, e);
    bad = bad ? bad : load_table(&l, r, PLACE, place_columns, L_COLUMNS, take_place, e);
    if (!bad && !a->processes.len)
        bad = -ENODATA;
    if (bad == -ENODATA)
        error_set(e, ENODATA,
                  at_ns ? "%s has no accounts of %s at that time: use a later time, or leave out @TIME"
                        : "%s has no accounts of %s: record with allium run --sites for sites, see "
                          "allium-tags(1) for tags",
                  r->shown, kind);
    if (!bad && l.damaged)
        a->processes.at[0].losses[ACCOUNT_LOST_RECORDS] += l.damaged;
    map_release(&l.processes);
    map_release(&l.counts);
    map_release(&l.places);
    vec_release(&l.sums);
    if (bad)
        accounts_release(a);
    else
        accounts_merge(a, texts);
    return bad;
}

int recording_load_accounts(struct accounts *a, struct alloc_texts *texts, const char *path, const char *kind,
                            const uint64_t *at_ns, struct error *e)
{
    struct reader r;
    *a = (struct accounts){.rows = {0}};
    int bad = reader_open(&r, path, e);
    bad = bad ? bad : reader_load_accounts(&r, a, texts, kind, at_ns, e);
    reader_close(&r);
    return bad;
}
