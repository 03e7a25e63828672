/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/profile/profile_pair.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "model/profile/frames.h"

#define EXECUTABLE "\1" /* stands for the name of the one program in each source */

struct build {
    struct profile_pair *j;
    const struct profile *of[PROFILE_PAIR_SIDES];
    struct map ids[PROFILE_PAIR_SIDES]; /* images by id */
    /* by index in the profile of each side: the index in the joint profile; PROFILE_NONE: not joined yet */
    uint32_t *images[PROFILE_PAIR_SIDES];
    uint32_t *modules[PROFILE_PAIR_SIDES];
    uint32_t *stacks[PROFILE_PAIR_SIDES];
    uint32_t *cells[PROFILE_PAIR_SIDES];
    struct map image_keys, thread_keys, module_keys, location_keys, stack_keys, cell_keys;
    struct VEC(enum profile_pair_side) named_by; /* by location: the side that its line comes from */
    struct frames frames;
};

/* ---- images ---- */

static const char *program_of(const struct profile *p, const struct profile_image *i)
{
    const char *exe = profile_text(p, i->exe);
    return *exe && !profile_is_kernel(i) ? frame_basename(exe) : profile_text(p, i->comm);
}

static const struct profile_image *image_of_id(const struct build *b, int side, uint64_t id)
{
    size_t at = map_get_u64(&b->ids[side], id);
    return at == MAP_NONE ? NULL : &b->of[side]->images.at[at];
}

/* Decides whether stacks must be matched by name, and whether the sides have two versions of one program. */
static void choose_match(struct build *b)
{
    const char *program[PROFILE_PAIR_SIDES] = {NULL, NULL};
    bool several = false;
    for (int side = 0; side < PROFILE_PAIR_SIDES; side++)
        vec_each (const struct profile_image, i, &b->of[side]->images) {
            const char *name = program_of(b->of[side], i);
            if (image_of_id(b, !side, i->id))
                continue;
            several |= program[side] && strcmp(program[side], name);
            program[side] = name;
        }
    b->j->by_name = program[PROFILE_PAIR_BEFORE] && program[PROFILE_PAIR_AFTER];
    b->j->versions = b->j->by_name && !several;
}

static uint32_t new_image(struct build *b, const struct profile *p, const struct profile_image *i)
{
    struct profile *to = b->j->profile;
    struct profile_image it = {.id = i->id, .pid = i->pid, .state = i->state};
    it.comm = profile_string(to, profile_text(p, i->comm));
    it.exe = profile_string(to, profile_text(p, i->exe));
    *vec_push(&to->images) = it;
    vec_push(&b->j->images);
    return (uint32_t)to->images.len - 1;
}

static void pair(struct profile_pair_image *it, const struct profile_image *before,
                 const struct profile_image *after)
{
    *it = (struct profile_pair_image){.same = true, .of = {before, after}};
    it->later = after->taken_ns >= before->taken_ns ? PROFILE_PAIR_AFTER : PROFILE_PAIR_BEFORE;
    it->still = after->taken_ns == before->taken_ns;
    it->same_peak = it->still || (before->peak_ns && before->peak_ns == after->peak_ns &&
                                  before->peak_bytes == after->peak_bytes);
}

static void join_images(struct build *b, enum profile_pair_side side)
{
    const struct profile *p = b->of[side];
    for (uint32_t k = 0; k < p->images.len; k++) {
        const struct profile_image *i = &p->images.at[k], *other = image_of_id(b, !side, i->id);
        struct buf key = BUF_INIT;
        bool added;
        if (other)
            buf_printf(&key, "%c%llx", '\0', (unsigned long long)i->id);
        else
            buf_addstr(&key, b->j->versions ? EXECUTABLE : program_of(p, i));
        uint32_t at = (uint32_t)map_put(&b->image_keys, buf_str(&key), key.len, b->j->images.len, &added);
        if (added) {
            new_image(b, p, i);
            if (other)
                pair(&b->j->images.at[at], side == PROFILE_PAIR_BEFORE ? i : other,
                     side == PROFILE_PAIR_BEFORE ? other : i);
        }
        b->j->images.at[at].images[side]++;
        b->images[side][k] = at;
        buf_release(&key);
    }
}

/* ---- code ---- */

/* Adds the part of a module's name that is the same in all versions: without directories and the text after ".so". */
static void add_module_name(struct buf *b, const char *path)
{
    const char *name = frame_basename(path), *end = strstr(name, ".so.");
    buf_add(b, name, end ? (size_t)(end - name) + 3 : strlen(name));
}

static bool is_executable(const struct profile *p, const char *path)
{
    vec_each (const struct profile_image, i, &p->images)
        if (!strcmp(profile_text(p, i->exe), path))
            return true;
    return false;
}

static void add_module_key(struct buf *key, const struct build *b, const struct profile *p, uint32_t module)
{
    const char *path = profile_text(p, p->modules.at[module].path);
    if (!b->j->by_name)
        buf_printf(key, "%s%c%s", path, '\0', profile_text(p, p->modules.at[module].build_id));
    else if (b->j->versions && is_executable(p, path))
        buf_addstr(key, EXECUTABLE);
    else
        add_module_name(key, path);
}

static uint32_t join_module(struct build *b, enum profile_pair_side side, uint32_t module)
{
    struct profile *to = b->j->profile;
    const struct profile *p = b->of[side];
    struct buf key = BUF_INIT;
    bool added;
    if (module == PROFILE_NONE || b->modules[side][module] != PROFILE_NONE)
        return module == PROFILE_NONE ? module : b->modules[side][module];
    add_module_key(&key, b, p, module);
    uint32_t at = (uint32_t)map_put(&b->module_keys, buf_str(&key), key.len, to->modules.len, &added);
    buf_release(&key);
    if (added) {
        struct profile_module it = p->modules.at[module];
        it.path = profile_string(to, profile_text(p, it.path));
        it.build_id = profile_string(to, profile_text(p, it.build_id));
        *vec_push(&to->modules) = it;
    }
    b->modules[side][module] = at;
    return at;
}

static void add_line(struct profile *to, const struct profile *p, const struct profile_line *line)
{
    struct profile_line it = *line;
    it.function = profile_string(to, profile_text(p, line->function));
    it.file = profile_string(to, profile_text(p, line->file));
    *vec_push(&to->lines) = it;
}

/* Returns the joint location of an address in a file. If only one side knows the names there, its names are used. */
static uint32_t join_location(struct build *b, enum profile_pair_side side, uint32_t location)
{
    struct profile *to = b->j->profile;
    const struct profile *p = b->of[side];
    const struct profile_location *l = &p->locations.at[location];
    uint32_t module = join_module(b, side, l->module);
    uint64_t key[] = {module, l->address, l->exact};
    bool added;
    uint32_t at = (uint32_t)map_put(&b->location_keys, key, sizeof(key), to->locations.len, &added);
    if (added)
        *vec_push(&to->locations) =
            (struct profile_location){.module = module, .address = l->address, .exact = l->exact};
    struct profile_location *it = &to->locations.at[at];
    if (it->n_lines || !l->n_lines)
        return at;
    it->first_line = (uint32_t)to->lines.len;
    it->n_lines = l->n_lines;
    for (uint32_t k = 0; k < l->n_lines; k++)
        add_line(to, p, &p->lines.at[l->first_line + k]);
    return at;
}

/* Returns the joint location of a function in a module. Each function gets an address of its own, so that no two
 * functions count as the same code. */
static uint32_t join_function(struct build *b, enum profile_pair_side side, const struct frame *f)
{
    struct profile *to = b->j->profile;
    const struct profile *p = b->of[side];
    char scratch[FRAME_NAME_BYTES];
    const char *function = frame_function(p, f, scratch);
    uint32_t module = join_module(b, side, p->locations.at[f->location].module);
    struct buf key = BUF_INIT;
    bool added;
    buf_add(&key, &module, sizeof(module));
    buf_addstr(&key, function);
    uint32_t at = (uint32_t)map_put(&b->location_keys, buf_str(&key), key.len, to->locations.len, &added);
    buf_release(&key);
    if (added) {
        struct profile_location it = {
            .module = module, .address = at, .first_line = (uint32_t)to->lines.len, .n_lines = 1};
        struct profile_line line = {.line = frame_line(p, f), .inlined = frame_inlined(p, f)};
        if (f->line != PROFILE_NONE) {
            line.wrapper = p->lines.at[f->line].wrapper;
            line.nameless = p->lines.at[f->line].nameless;
        }
        line.function = profile_string(to, function);
        line.file = profile_string(to, frame_file(p, f));
        *vec_push(&to->lines) = line;
        *vec_push(&to->locations) = it;
        *vec_push(&b->named_by) = side;
    } else if (b->named_by.at[at] == side &&
               to->lines.at[to->locations.at[at].first_line].line != frame_line(p, f)) {
        to->lines.at[to->locations.at[at].first_line].line = 0;
    }
    return at;
}

static uint32_t join_stack(struct build *b, enum profile_pair_side side, uint32_t stack)
{
    struct profile *to = b->j->profile;
    const struct profile *p = b->of[side];
    const struct profile_stack *s = &p->stacks.at[stack];
    struct VEC(uint32_t) at = {0};
    uint32_t end = s->end;
    bool added;
    for (uint32_t k = 0; !b->j->by_name && k < s->depth; k++)
        *vec_push(&at) = join_location(b, side, p->stack_locations.at[s->first + k]);
    if (b->j->by_name) {
        frames_of(&b->frames, p, stack);
        end = PROFILE_STACK_WHOLE;
        vec_each (const struct frame, f, &b->frames)
            if (f->location == PROFILE_NONE)
                end = f->end;
            else
                *vec_push(&at) = join_function(b, side, f);
    }
    *vec_push(&at) = end;
    uint32_t index =
        (uint32_t)map_put(&b->stack_keys, at.at, at.len * sizeof(*at.at), to->stacks.len, &added);
    if (added) {
        *vec_push(&to->stacks) = (struct profile_stack){.first = (uint32_t)to->stack_locations.len,
                                                        .depth = (uint32_t)at.len - 1,
                                                        .end = (enum profile_stack_end)end};
        for (size_t k = 0; k + 1 < at.len; k++)
            *vec_push(&to->stack_locations) = at.at[k];
    }
    vec_release(&at);
    return index;
}

/* ---- cells ---- */

static uint32_t join_thread(struct build *b, const struct profile *p, uint32_t thread, uint32_t image)
{
    struct profile *to = b->j->profile;
    const struct profile_thread *t = &p->threads.at[thread];
    struct profile_thread it = {.image = image, .tid = t->tid, .ordinal = t->ordinal};
    struct buf key = BUF_INIT;
    bool added;
    /* The first thread has the name of the program, which may differ between the sides. */
    bool is_first = t->name == p->images.at[t->image].comm;
    it.name = profile_string(to, profile_text(p, t->name));
    if (b->j->images.at[image].same)
        buf_printf(&key, "%u %d %u", image, t->tid, t->ordinal);
    else
        buf_printf(&key, "%u %d %s", image, t->tid != 0, is_first ? EXECUTABLE : profile_text(p, t->name));
    uint32_t at = (uint32_t)map_put(&b->thread_keys, buf_str(&key), key.len, to->threads.len, &added);
    buf_release(&key);
    if (added)
        *vec_push(&to->threads) = it;
    return at;
}

static void add_sums(struct profile_sums *to, const struct profile_sums *s)
{
    to->samples += s->samples;
    to->seen_bytes += s->seen_bytes;
    to->bytes += s->bytes;
    to->count += s->count;
}

static void add_cell(struct profile_cell *to, const struct profile_cell *c)
{
    add_sums(&to->allocated, &c->allocated);
    add_sums(&to->freed, &c->freed);
    add_sums(&to->at_peak, &c->at_peak);
    to->temporary_samples += c->temporary_samples;
    to->temporary_bytes += c->temporary_bytes;
}

static void join_cell(struct build *b, enum profile_pair_side side, uint32_t cell, bool kept)
{
    const struct profile *p = b->of[side];
    const struct profile_cell *c = &p->cells.at[cell];
    uint32_t *stack = &b->stacks[side][c->stack];
    bool added;
    if (*stack == PROFILE_NONE)
        *stack = join_stack(b, side, c->stack);
    struct profile_cell it = {.image = b->images[side][c->image],
                              .stack = *stack,
                              .size_class = c->size_class,
                              .period_bytes = c->period_bytes};
    it.thread = join_thread(b, p, c->thread, it.image);
    uint64_t key[] = {it.image, it.stack, it.thread, it.size_class, it.period_bytes};
    uint32_t at = (uint32_t)map_put(&b->cell_keys, key, sizeof(key), b->j->cells.len, &added);
    if (added)
        *vec_push(&b->j->cells) = (struct profile_pair_cell){.of = {it, it}};
    b->cells[side][cell] = at;
    b->j->cells.at[at].kept |= kept;
    b->j->cells.at[at].of_side[side] = true;
    if (it.period_bytes > b->j->period_bytes[side])
        b->j->period_bytes[side] = it.period_bytes;
    if (kept)
        add_cell(&b->j->cells.at[at].of[side], c);
}

static uint32_t *nothing_yet(size_t n)
{
    uint32_t *a = mem_array(n, sizeof(*a));
    memset(a, 0xff, n * sizeof(*a)); /* PROFILE_NONE */
    return a;
}

static void release(struct build *b)
{
    for (int side = 0; side < PROFILE_PAIR_SIDES; side++) {
        map_release(&b->ids[side]);
        free(b->images[side]);
        free(b->modules[side]);
        free(b->stacks[side]);
        free(b->cells[side]);
    }
    map_release(&b->image_keys);
    map_release(&b->thread_keys);
    map_release(&b->module_keys);
    map_release(&b->location_keys);
    map_release(&b->stack_keys);
    map_release(&b->cell_keys);
    vec_release(&b->named_by);
    vec_release(&b->frames);
}

struct profile_pair *profile_pair_new(const struct profile *before, const struct profile *after,
                                      profile_pair_keep_fn *keep, void *arg)
{
    struct build b = {.j = mem_alloc(sizeof(*b.j)), .of = {before, after}};
    b.j->profile = profile_new();
    for (int side = 0; side < PROFILE_PAIR_SIDES; side++)
        for (uint32_t i = 0; i < b.of[side]->images.len; i++)
            map_put_u64(&b.ids[side], b.of[side]->images.at[i].id, i, NULL);
    choose_match(&b);
    /* The later source comes first: code that both sources have gets its names. */
    for (int side = PROFILE_PAIR_AFTER; side >= PROFILE_PAIR_BEFORE; side--) {
        const struct profile *p = b.of[side];
        b.images[side] = nothing_yet(p->images.len);
        b.modules[side] = nothing_yet(p->modules.len);
        b.stacks[side] = nothing_yet(p->stacks.len);
        b.cells[side] = nothing_yet(p->cells.len);
        b.j->period_bytes[side] = profile_silent_period(p);
        join_images(&b, (enum profile_pair_side)side);
        for (uint32_t i = 0; i < p->cells.len; i++)
            join_cell(&b, (enum profile_pair_side)side, i, !keep || keep(arg, p, i));
    }
    profile_pair_match(b.j, b.of, b.cells);
    release(&b);
    return b.j;
}

void profile_pair_free(struct profile_pair *j)
{
    if (!j)
        return;
    profile_free(j->profile);
    vec_release(&j->images);
    vec_release(&j->cells);
    free(j);
}
