/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TEST_STORE_H
#define TEST_STORE_H

/*
 * For the tests of src/store: a folder of its own, images that grow at random from a seed, and a profile as text, so
 * that two can be compared whatever the order and the sharing of their parts.
 */

#include "base/buf.h"
#include "store/profile_load.h"
#include "store/recording.h"
#include "store/sql_statement.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define T0 1700000000000000000u /* when all of it happens, ns */

static char test_folder[] = "/tmp/allium-store-XXXXXX";
static char file[64], wal[80], shm[80];
static struct error err;

#define assert_ok(call)                                                                                      \
    do {                                                                                                     \
        err.text[0] = '\0';                                                                                  \
        int rc_ = (call);                                                                                    \
        if (rc_)                                                                                             \
            fail_msg("%s: %d %s", #call, rc_, err.text);                                                     \
    } while (0)

/* Fails with this code, and says so in one line that has these words. */
static inline void assert_refused(int rc, int code, const char *words)
{
    if (rc != -code || !strstr(err.text, words) || strpbrk(err.text, "\n\r\t"))
        fail_msg("%d, not %d: '%s', not '%s'", rc, -code, err.text, words);
}

static inline int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(test_folder))
        return -1;
    snprintf(file, sizeof(file), "%s/a.allium", test_folder);
    snprintf(wal, sizeof(wal), "%s-wal", file);
    snprintf(shm, sizeof(shm), "%s-shm", file);
    return 0;
}

static inline int empty_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "chmod 700 %s && rm -rf %s/*", test_folder, test_folder);
    return system(command);
}

static inline int remove_folder(void **state)
{
    return empty_folder(state) || rmdir(test_folder);
}

static inline uint64_t draw(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline uint32_t below(uint64_t *seed, size_t n)
{
    return (uint32_t)(draw(seed) % n);
}

static inline double draw_real(uint64_t *seed)
{
    return (double)(draw(seed) >> (16 + draw(seed) % 40)) / 256;
}

static inline uint32_t text_of(struct profile *p, const char *fmt, uint64_t number)
{
    char text[64];
    snprintf(text, sizeof(text), fmt, number);
    return profile_string(p, text);
}

/* The names of an address follow from it, as in life. */
static inline void name_location(struct profile *p, struct profile_location *o)
{
    o->first_line = (uint32_t)p->lines.len;
    o->n_lines = 1 + (uint32_t)(o->address / 3) % 3;
    for (uint32_t i = 0; i < o->n_lines; i++) {
        struct profile_line n = {.function = text_of(p, "f<%" PRIu64 ">", (o->address + i) % 1000),
                                 .file =
                                     o->address % 7 ? text_of(p, "src/%" PRIu64 ".c", o->address % 50) : 0,
                                 .line = (uint32_t)o->address % 5000,
                                 .inlined = i + 1 < o->n_lines};
        *vec_push(&p->lines) = n;
    }
}

static inline void add_places(struct profile *p, uint64_t *seed, size_t n)
{
    for (size_t i = 0; i < 1 + n / 50; i++) {
        uint64_t number = p->modules.len, start = draw(seed) >> 17 << 12;
        struct profile_module m = {.path = text_of(p, "/lib/m%" PRIu64 ".so", number),
                                   .build_id = text_of(p, number % 3 ? "%016" PRIx64 : "", number * 77),
                                   .start = start,
                                   .end = start + 4096 * (1 + number),
                                   .bias = start};
        *vec_push(&p->modules) = m;
    }
    for (size_t i = 0; i < n; i++) {
        struct profile_location *o = vec_push(&p->locations);
        o->module = draw(seed) % 20 ? below(seed, p->modules.len) : PROFILE_NONE;
        o->address = draw(seed) % 9 ? draw(seed) % 100000 : 0;
        o->exact = draw(seed) % 5 == 0;
        if (o->address % 3)
            name_location(p, o);
    }
}

static inline void add_stacks(struct profile *p, uint64_t *seed, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct profile_stack k = {.first = (uint32_t)p->stack_locations.len,
                                  .depth = below(seed, 12),
                                  .end = (enum profile_stack_end)below(seed, 5)};
        for (uint32_t d = 0; d < k.depth; d++)
            *vec_push(&p->stack_locations) = below(seed, p->locations.len);
        *vec_push(&p->stacks) = k;
    }
}

static inline void raise_sums(struct profile_sums *s, uint64_t *seed)
{
    s->samples += 1 + draw(seed) % 9;
    s->seen_bytes += draw_real(seed);
    s->bytes += draw_real(seed);
    s->count += draw_real(seed);
}

static inline void change_cells(struct profile *p, uint64_t *seed)
{
    vec_each (struct profile_cell, c, &p->cells) {
        if (draw(seed) % 3)
            continue;
        raise_sums(draw(seed) % 2 ? &c->allocated : &c->freed, seed);
        raise_sums(&c->at_peak, seed);
        c->temporary_samples++;
        c->temporary_bytes += draw_real(seed);
        c->lifetimes[below(seed, PROFILE_LIFETIMES)] += (uint32_t)draw(seed) % 1000;
    }
}

static inline void add_cells(struct profile *p, uint64_t *seed, size_t n, uint64_t now)
{
    for (size_t i = 0; i < n; i++) {
        struct profile_cell c = {.stack = below(seed, p->stacks.len),
                                 .thread = below(seed, p->threads.len),
                                 .size_class = (uint8_t)below(seed, 64),
                                 .period_bytes = draw(seed) % 4 ? 512 << 10 : 1};
        raise_sums(&c.allocated, seed);
        *vec_push(&p->cells) = c;
    }
    for (size_t i = 0; i < 2 * n; i++) {
        struct profile_sample v = {below(seed, p->cells.len),
                                   ((p->taken_ns - T0) * 1000 + i) | (draw(seed) & 1) << 63,
                                   draw(seed),
                                   draw(seed) >> 30,
                                   draw(seed) >> 50,
                                   now - below(seed, 10)};
        *vec_push(&p->samples) = v;
    }
}

/* Some of the samples are freed, and older frees forgotten. */
static inline void free_samples(struct profile *p, uint64_t *seed, uint64_t now)
{
    size_t kept = 0;
    if (p->frees.len > 20) {
        p->frees.len -= 10;
        memmove(p->frees.at, p->frees.at + 10, p->frees.len * sizeof(*p->frees.at));
    }
    for (size_t i = 0; i < p->samples.len; i++) {
        struct profile_sample v = p->samples.at[i];
        if (draw(seed) % 3) {
            p->samples.at[kept++] = v;
            continue;
        }
        struct profile_free f = {.cell = v.cell,
                                 .serial = v.serial,
                                 .address = v.address,
                                 .size_bytes = v.size_bytes,
                                 .born_ns = v.born_ns,
                                 .freed_ns = now,
                                 .stack = draw(seed) % 2 ? below(seed, p->stacks.len) : PROFILE_NONE,
                                 .location = draw(seed) % 2 ? below(seed, p->locations.len) : PROFILE_NONE,
                                 .thread = draw(seed) % 2 ? below(seed, p->threads.len) : PROFILE_NONE,
                                 .reallocated = draw(seed) % 2};
        *vec_push(&p->frees) = f;
    }
    p->samples.len = kept;
}

static inline void set_image(struct profile *p, uint64_t *seed, uint64_t now)
{
    struct profile_image *i = &p->images.at[0];
    i->comm = profile_string(p, "worker");
    i->exe = profile_string(p, "/usr/bin/worker");
    i->args = text_of(p, "worker --jobs %" PRIu64, draw(seed) % 4);
    i->state = (enum profile_image_state)below(seed, 3);
    i->taken_ns = p->taken_ns = now;
    i->peak_ns = now - 1;
    i->off_ns = draw(seed) >> 20;
    i->peak_bytes = draw_real(seed);
    i->operations_begun = draw(seed) >> 1;
    i->operations_done = draw(seed) >> 1;
    i->cold_ns = draw(seed) >> 20;
    i->ledger_bytes = draw(seed) >> 30;
    i->ledger_limit_bytes = draw(seed) >> 30;
    i->ledger_full = profile_string(p, draw(seed) % 2 ? "" : "its size limit is reached");
    i->rss_anon_bytes = draw(seed) >> 30;
    i->torn_samples = draw(seed) % 3;
    i->inconsistent = draw(seed) % 2;
    for (size_t k = 0; k < PROFILE_LOSSES; k++)
        i->losses[k] = draw(seed) % 100;
}

/* One image, at its next step, of about `n` more cells; its time moves on by 10 ns. */
static inline void grow(struct profile *p, uint64_t *seed, size_t n)
{
    uint64_t now = p->taken_ns + 10;
    add_places(p, seed, n);
    add_stacks(p, seed, n);
    for (size_t i = 0; i < 1 + n / 30; i++) {
        uint32_t ordinal = (uint32_t)p->threads.len;
        struct profile_thread t = {0, ordinal ? 100 + (int32_t)ordinal : 0, text_of(p, "t%" PRIu64, ordinal),
                                   ordinal};
        *vec_push(&p->threads) = t;
    }
    change_cells(p, seed);
    add_cells(p, seed, n, now);
    free_samples(p, seed, now);
    set_image(p, seed, now);
}

static inline struct profile *new_image(uint64_t *seed, uint64_t id)
{
    struct profile *p = profile_new();
    struct profile_image i = {
        .id = id, .parent_id = id / 3, .pid = -7, .parent_pid = 4711, .began_ns = T0 + 1};
    *vec_push(&p->images) = i;
    p->taken_ns = T0;
    for (size_t k = 0; k < PROFILE_LIFETIMES - 1; k++)
        p->lifetime_ns[k] = (uint64_t)5000 << (2 * k);
    grow(p, seed, 20);
    return p;
}

static inline struct recording *create(void)
{
    struct recording *r;
    assert_ok(recording_create(&r, file, false, &err));
    return r;
}

static inline void put(struct recording *r, const struct profile *p)
{
    assert_ok(recording_put_image(r, p, false, &err));
}

/* The answer to a question in SQL about the file. */
static inline int64_t ask(const char *sql)
{
    sqlite3 *db;
    int64_t answer;
    assert_int_equal(sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sql_select_number(db, sql, &answer), SQLITE_OK);
    sqlite3_close(db);
    return answer;
}

struct lines VEC(char *);

static inline void say_sums(struct buf *b, const struct profile_sums *s)
{
    buf_printf(b, " %" PRIu64 ",%a,%a,%a", s->samples, s->seen_bytes, s->bytes, s->count);
}

static inline void say_location(struct buf *b, const struct profile *p, uint32_t location)
{
    if (location == PROFILE_NONE)
        return;
    const struct profile_location *o = &p->locations.at[location];
    const char *path = o->module == PROFILE_NONE ? "-" : profile_text(p, p->modules.at[o->module].path);
    buf_printf(b, "\n  %s+%" PRIx64 "%s", path, o->address, o->exact ? "!" : "");
    for (uint32_t i = 0; i < o->n_lines; i++) {
        const struct profile_line *n = &p->lines.at[o->first_line + i];
        buf_printf(b, " %s%s:%s:%u", n->inlined ? "^" : "", profile_text(p, n->function),
                   profile_text(p, n->file), n->line);
    }
}

static inline void say_stack(struct buf *b, const struct profile *p, uint32_t stack)
{
    if (stack == PROFILE_NONE)
        return;
    const struct profile_stack *k = &p->stacks.at[stack];
    for (uint32_t i = 0; i < k->depth; i++)
        say_location(b, p, p->stack_locations.at[k->first + i]);
    buf_printf(b, "\n  end %d", k->end);
}

static inline void say_cell(struct buf *b, const struct profile *p, uint32_t cell)
{
    const struct profile_cell *c = &p->cells.at[cell];
    buf_printf(b, " of %" PRIx64 " thread %u class %d period %" PRIu64, p->images.at[c->image].id,
               p->threads.at[c->thread].ordinal, c->size_class, c->period_bytes);
    say_stack(b, p, c->stack);
}

static inline void end_line(struct lines *l, struct buf *b)
{
    *vec_push(l) = buf_detach(b);
}

static inline void say_names(struct lines *l, const struct profile *p)
{
    struct buf b = BUF_INIT;
    /* These recordings have no end, so that an image that was running is read as one of a recording that was cut
     * short. */
    vec_each (const struct profile_image, i, &p->images) {
        buf_printf(&b, "image %" PRIx64 " %" PRIx64 " %d %d %s %s '%s' %d", i->id, i->parent_id, i->pid,
                   i->parent_pid, profile_text(p, i->comm), profile_text(p, i->exe), profile_text(p, i->args),
                   i->state == PROFILE_IMAGE_CUT ? PROFILE_IMAGE_RUNNING : i->state);
        const uint64_t numbers[] = {i->began_ns,       i->taken_ns,         i->peak_ns,
                                    i->off_ns,         i->operations_begun, i->operations_done,
                                    i->cold_ns,        i->ledger_bytes,     i->ledger_limit_bytes,
                                    i->rss_anon_bytes, i->torn_samples,     i->inconsistent};
        for (size_t k = 0; k < sizeof(numbers) / sizeof(*numbers); k++)
            buf_printf(&b, " %" PRIu64, numbers[k]);
        for (size_t k = 0; k < PROFILE_LOSSES; k++)
            buf_printf(&b, " %" PRIu64, i->losses[k]);
        buf_printf(&b, " %a '%s'", i->peak_bytes, profile_text(p, i->ledger_full));
        end_line(l, &b);
    }
    vec_each (const struct profile_thread, t, &p->threads) {
        buf_printf(&b, "thread %" PRIx64 " %d %s %u", p->images.at[t->image].id, t->tid,
                   profile_text(p, t->name), t->ordinal);
        end_line(l, &b);
    }
    vec_each (const struct profile_module, m, &p->modules) {
        buf_printf(&b, "module %s %s %" PRIx64 " %" PRIx64 " %" PRIx64, profile_text(p, m->path),
                   profile_text(p, m->build_id), m->start, m->end, m->bias);
        end_line(l, &b);
    }
    for (uint32_t i = 0; i < p->locations.len; i++) {
        buf_printf(&b, "location");
        say_location(&b, p, i);
        end_line(l, &b);
    }
}

static inline void say_books(struct lines *l, const struct profile *p)
{
    struct buf b = BUF_INIT;
    for (uint32_t i = 0; i < p->cells.len; i++) {
        const struct profile_cell *c = &p->cells.at[i];
        buf_printf(&b, "cell");
        say_cell(&b, p, i);
        say_sums(&b, &c->allocated);
        say_sums(&b, &c->freed);
        say_sums(&b, &c->at_peak);
        buf_printf(&b, " %" PRIu64 " %a", c->temporary_samples, c->temporary_bytes);
        for (size_t k = 0; k < PROFILE_LIFETIMES; k++)
            buf_printf(&b, " %u", c->lifetimes[k]);
        end_line(l, &b);
    }
    vec_each (const struct profile_sample, v, &p->samples) {
        buf_printf(&b, "sample %" PRIu64 " %" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64, v->serial,
                   v->address, v->size_bytes, v->slack_bytes, v->born_ns);
        say_cell(&b, p, v->cell);
        end_line(l, &b);
    }
    vec_each (const struct profile_free, f, &p->frees) {
        buf_printf(&b, "free %" PRIu64 " %" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %d %d", f->serial,
                   f->address, f->size_bytes, f->born_ns, f->freed_ns, f->reallocated,
                   f->thread == PROFILE_NONE ? -1 : (int)p->threads.at[f->thread].ordinal);
        say_stack(&b, p, f->stack);
        say_location(&b, p, f->location);
        say_cell(&b, p, f->cell);
        end_line(l, &b);
    }
    vec_each (const struct profile_point, q, &p->points) {
        buf_printf(&b, "point %" PRIx64 " %" PRIu64 " %a %a %" PRIu64, p->images.at[q->image].id, q->time_ns,
                   q->live_bytes, q->allocated_bytes, q->rss_anon_bytes);
        end_line(l, &b);
    }
    for (size_t k = 0; k < PROFILE_LIFETIMES - 1; k++)
        buf_printf(&b, "%" PRIu64 " ", p->lifetime_ns[k]);
    buf_printf(&b, "taken %" PRIu64 " dropped %" PRIu64 " %a", p->taken_ns, p->images_dropped,
               p->images_dropped_peak_bytes);
    end_line(l, &b);
}

static inline int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All of it, each thing once, in alphabetical order. Heap. */
static inline char *told(const struct profile *p)
{
    struct lines l = {0};
    struct buf b = BUF_INIT;
    const char *before = "";
    say_names(&l, p);
    say_books(&l, p);
    qsort(l.at, l.len, sizeof(*l.at), by_text);
    vec_each (char *, line, &l) {
        if (strcmp(*line, before))
            buf_printf(&b, "%s\n", *line);
        before = *line;
    }
    vec_each (char *, line, &l)
        free(*line);
    vec_release(&l);
    return buf_detach(&b);
}

static inline void assert_same(const struct profile *is, const struct profile *expected)
{
    char *left = told(is), *right = told(expected);
    size_t at = 0, line = 0;
    for (; left[at] && left[at] == right[at]; at++)
        line = left[at] == '\n' ? at + 1 : line;
    if (left[at] != right[at])
        fail_msg("they differ:\n%.600s\n---\n%.600s", left + line, right + line);
    free(left);
    free(right);
}

/* Loads the file at the end and compares. */
static inline void assert_holds(const struct profile *expected)
{
    struct profile *p;
    assert_ok(recording_load(&p, file, NULL, &err));
    assert_true(profile_valid(p));
    assert_same(p, expected);
    profile_free(p);
}

#endif
