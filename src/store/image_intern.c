/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/recording_writer.h"

#include <string.h>

static uint32_t *unknown(size_t n)
{
    uint32_t *rows = mem_array(n, sizeof(*rows));
    memset(rows, 0xff, n * sizeof(*rows));
    return rows;
}

void intern_init(struct intern *n, struct recording *r, const struct profile *p, uint32_t image)
{
    *n = (struct intern){.r = r,
                         .p = p,
                         .image = image,
                         .strings = unknown(p->strings.len),
                         .modules = unknown(p->modules.len),
                         .locations = unknown(p->locations.len),
                         .stacks = unknown(p->stacks.len)};
}

void intern_release(struct intern *n)
{
    free(n->strings);
    free(n->modules);
    free(n->locations);
    free(n->stacks);
}

uint32_t intern_text(struct recording *r, const char *text)
{
    bool added;
    size_t bytes = strnlen(text, RECORDING_TEXT_MAX);
    uint32_t row = (uint32_t)map_put(&r->strings, text, bytes, r->strings.len, &added);
    if (added) {
        struct sql *s = writer_statement(r, SCHEMA_STRING);
        sql_put_int(s, row);
        sql_put_text(s, text, (int)bytes);
        writer_run(r, s);
    }
    return row;
}

uint32_t intern_string(struct intern *n, uint32_t string)
{
    uint32_t *row = &n->strings[string];
    if (*row == PROFILE_NONE)
        *row = intern_text(n->r, profile_text(n->p, string));
    return *row;
}

uint32_t intern_module(struct intern *n, uint32_t module)
{
    uint32_t *row = &n->modules[module];
    if (*row != PROFILE_NONE)
        return *row;
    const struct profile_module *m = &n->p->modules.at[module];
    struct row_module key;
    bool added;
    memset(&key, 0, sizeof(key)); /* no padding with surprises in a key */
    key.path = intern_string(n, m->path);
    key.build_id = intern_string(n, m->build_id);
    key.size_bytes = m->end - m->start;
    *row = (uint32_t)map_put(&n->r->modules, &key, sizeof(key), n->r->modules.len, &added);
    if (added) {
        struct sql *s = writer_statement(n->r, SCHEMA_MODULE);
        row_module(s, NULL, *row, &key);
        writer_run(n->r, s);
    }
    return *row;
}

/* Names get better while a recording is written: debug files come from servers. Each kind is better than those
 * before. */
enum {
    UNNAMED,
    BY_ADDRESS, /* "libfoo.so.1+0x1234" */
    BY_SYMBOL,  /* no file: one function */
    BY_LINE,
};

static uint8_t how_named(const struct intern *n, const struct profile_location *o)
{
    if (!o->n_lines)
        return UNNAMED;
    const struct profile_line *last = &n->p->lines.at[o->first_line + o->n_lines - 1];
    if (o->n_lines > 1 || *profile_text(n->p, last->file))
        return BY_LINE;
    return strstr(profile_text(n->p, last->function), "+0x") ? BY_ADDRESS : BY_SYMBOL;
}

static void put_lines(struct intern *n, const struct profile_location *o, uint32_t row)
{
    for (uint32_t i = 0; i < o->n_lines; i++) {
        const struct profile_line *line = &n->p->lines.at[o->first_line + i];
        struct row_line it = {.location = row, .position = i, .line = *line};
        it.line.function = intern_string(n, line->function);
        it.line.file = intern_string(n, line->file);
        struct sql *s = writer_statement(n->r, SCHEMA_LINE);
        row_line(s, NULL, &it);
        writer_run(n->r, s);
    }
}

uint32_t intern_location(struct intern *n, uint32_t location)
{
    uint32_t *row = &n->locations[location];
    if (*row != PROFILE_NONE)
        return *row;
    const struct profile_location *o = &n->p->locations.at[location];
    struct row_location key;
    bool added;
    memset(&key, 0, sizeof(key));
    key.module = o->module == PROFILE_NONE ? PROFILE_NONE : intern_module(n, o->module);
    key.image = o->module == PROFILE_NONE && o->address ? n->image : PROFILE_NONE;
    key.address = o->address;
    key.exact = o->exact;
    *row = (uint32_t)map_put(&n->r->locations, &key, sizeof(key), n->r->locations.len, &added);
    if (added) {
        struct sql *s = writer_statement(n->r, SCHEMA_LOCATION);
        row_location(s, NULL, *row, &key);
        writer_run(n->r, s);
        vec_push(&n->r->named);
    }
    uint8_t named = how_named(n, o);
    if (named > n->r->named.at[*row]) {
        n->r->named.at[*row] = named;
        put_lines(n, o, *row); /* never fewer lines than there were: what is not BY_LINE has one */
    }
    return *row;
}

static uint32_t stack_row(struct recording *r, uint32_t caller, uint32_t location)
{
    struct row_stack key = {.caller = caller, .location = location};
    bool added;
    uint32_t row = (uint32_t)map_put(&r->stacks, &key, sizeof(key), r->stacks.len, &added);
    if (added) {
        struct sql *s = writer_statement(r, SCHEMA_STACK);
        row_stack(s, NULL, row, &key);
        writer_run(r, s);
    }
    return row;
}

uint32_t intern_stack(struct intern *n, uint32_t stack)
{
    uint32_t *row = &n->stacks[stack];
    if (*row != PROFILE_NONE)
        return *row;
    const struct profile_stack *k = &n->p->stacks.at[stack];
    const uint32_t *frames = k->depth ? &n->p->stack_locations.at[k->first] : NULL;
    uint32_t depth = k->depth, at = k->end;
    if (depth > RECORDING_DEPTH_MAX) {
        depth = RECORDING_DEPTH_MAX;
        at = PROFILE_STACK_CUT;
    }
    uint32_t same = n->last_end == at ? n->last_depth : 0; /* frames that may be those of the last stack */
    n->last_end = at;
    for (uint32_t i = 0; i < depth; i++) {
        struct intern_frame *f = &n->last[i];
        uint32_t location = frames[depth - 1 - i];
        if (i >= same || f->location != location) {
            same = 0;
            *f = (struct intern_frame){location, stack_row(n->r, at, intern_location(n, location))};
        }
        at = f->row;
    }
    n->last_depth = same ? same : depth;
    return *row = at;
}

void intern_begin(struct recording *r)
{
    intern_text(r, "");
    for (uint32_t end = 0; end < ROW_STACK_ENDS; end++) {
        struct row_stack none = {PROFILE_NONE, PROFILE_NONE};
        /* Each has a key of its own: no stack is called by NONE. */
        struct row_stack key = {PROFILE_NONE, end};
        map_put(&r->stacks, &key, sizeof(key), r->stacks.len, NULL);
        struct sql *s = writer_statement(r, SCHEMA_STACK);
        row_stack(s, NULL, end, &none);
        writer_run(r, s);
    }
}
