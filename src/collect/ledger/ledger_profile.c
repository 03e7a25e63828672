/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/ledger/ledger_profile.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

_Static_assert((int)PROFILE_LOSSES == (int)LEDGER_LOST_TAGS, "losses are the same list");
_Static_assert((int)PROFILE_LIFETIMES == (int)LEDGER_LIFETIMES, "lifetime classes are the same");
_Static_assert((int)PROFILE_STACK_BROKEN == (int)LEDGER_STACK_BROKEN, "stack ends are the same list");

#define SAMPLES_AT_ONCE (64u << 10)

#define Q ((double)(1u << LEDGER_Q))

struct work {
    const struct ledger_copy *c;
    struct profile *p;
    uint32_t *stack; /* number in the ledger -> number in the profile; PROFILE_NONE: left out */
    uint32_t *cell;  /* the same for cells */
};

/* Converts a figure to an integer, at least 0 and at most 2^63. A figure from a file may have any value, and C does not
 * define the conversion of values that do not fit. */
static uint64_t whole(double figure)
{
    return figure >= 0x1p63 ? (uint64_t)1 << 63 : figure > 0 ? (uint64_t)figure : 0;
}

static struct profile_image *image(struct work *w)
{
    return &w->p->images.at[0];
}

static uint32_t text_at(struct work *w, uint32_t offset)
{
    if (offset >= w->c->count[LEDGER_STRINGS]) {
        image(w)->inconsistent = true;
        return 0;
    }
    return profile_string(w->p, (const char *)w->c->table[LEDGER_STRINGS] + offset);
}

static uint32_t fixed_text(struct work *w, const char *text, size_t size)
{
    char *copy = mem_strndup(text, size);
    uint32_t at = profile_string(w->p, copy);
    free(copy);
    return at;
}

_Static_assert(LEDGER_CGROUP_SHARE == 12, "full_text() says so in words");

static const char *full_text(uint32_t full)
{
    switch ((enum ledger_full)full) {
    case LEDGER_NOT_FULL:
        return "";
    case LEDGER_FULL_LIMIT:
        return "its size limit is reached (--ledger-size)";
    case LEDGER_FULL_FILESYSTEM:
        return "its tmpfs is nearly full";
    case LEDGER_FULL_CGROUP:
        return "the memory cgroup is nearly full";
    case LEDGER_FULL_SECCOMP:
        return "the program entered seccomp";
    case LEDGER_FULL_REFUSED:
        return "the kernel refused more memory";
    case LEDGER_FULL_OWN_LIMIT:
        return "a limit of the program is nearly reached (ulimit -v, ulimit -d)";
    case LEDGER_FULL_SHARE:
        return "a twelfth of the memory cgroup's limit is reached";
    }
    return "unknown reason";
}

/* Returns how long sampling was off: the sum in the header and, if it is off now, the time up to the end of the image
 * or to this reading. */
static uint64_t off_ns(const struct ledger_copy *c)
{
    const struct ledger_header *h = &c->header;
    uint64_t end = h->state != LEDGER_RUNNING ? h->ended_ticks : c->taken_ticks, ticks = h->off_ticks;
    if (h->off_since_ticks && end > h->off_since_ticks)
        ticks += end - h->off_since_ticks;
    return whole((double)ticks / c->ticks_per_ns);
}

static void take_image(struct work *w)
{
    const struct ledger_copy *c = w->c;
    const struct ledger_header *h = &c->header;
    struct profile_image i = {
        .id = h->image_id,
        .parent_id = h->parent_image_id,
        .pid = h->pid,
        .parent_pid = h->parent_pid,
        .state = h->state == LEDGER_EXITED     ? PROFILE_IMAGE_EXITED
                 : h->state == LEDGER_DETACHED ? PROFILE_IMAGE_DETACHED
                                               : PROFILE_IMAGE_ENDED,
        .began_ns = h->began_realtime_ns,
        .taken_ns = c->taken_realtime_ns,
        .ended_ns = h->state != LEDGER_RUNNING ? ledger_copy_realtime(c, h->ended_ticks) : 0,
        .peak_ns = ledger_copy_realtime(c, h->peak_ticks),
        .peak_bytes = (double)h->peak_bytes_q / Q,
        .off_ns = off_ns(c),
        .ledger_bytes = h->ready_bytes,
        .ledger_limit_bytes = h->limit_bytes,
        .torn_samples = c->torn_samples,
    };
    for (int k = 0; k < PROFILE_LOSSES; k++)
        i.losses[k] = h->losses[k];
    for (int k = 0; k < LEDGER_SHARDS; k++) {
        i.operations_begun += h->shards[k].begun;
        i.operations_done += h->shards[k].done;
        i.cold_ns += whole((double)h->shards[k].cold_ticks / c->ticks_per_ns);
    }
    *vec_push(&w->p->images) = i;
    image(w)->comm = fixed_text(w, h->comm, sizeof(h->comm));
    uint32_t exe = text_at(w, h->exe);
    image(w)->exe = exe;
    uint32_t full = profile_string(w->p, full_text(h->full));
    image(w)->ledger_full = full;
    for (int k = 0; k + 1 < PROFILE_LIFETIMES; k++)
        w->p->lifetime_ns[k] =
            whole((double)(1ull << (2 * k + LEDGER_LIFETIME_FIRST_SHIFT)) / c->ticks_per_ns);
    w->p->taken_ns = c->taken_realtime_ns;
}

static void take_modules(struct work *w)
{
    for (uint64_t i = 0; i < w->c->count[LEDGER_MODULES]; i++) {
        const struct ledger_module *m = ledger_copy_at(w->c, LEDGER_MODULES, struct ledger_module, i);
        char hex[2 * LEDGER_BUILD_ID_BYTES + 1] = "";
        for (unsigned k = 0; k < m->build_id_len && k < LEDGER_BUILD_ID_BYTES; k++)
            snprintf(hex + 2 * k, 3, "%02x", m->build_id[k]);
        struct profile_module row = {.path = text_at(w, m->path),
                                     .build_id = profile_string(w->p, hex),
                                     .start = m->start,
                                     .end = m->end,
                                     .bias = m->bias};
        *vec_push(&w->p->modules) = row;
    }
}

static void take_locations(struct work *w)
{
    for (uint64_t i = 0; i < w->c->count[LEDGER_FRAMES]; i++) {
        uint64_t frame = *ledger_copy_at(w->c, LEDGER_FRAMES, uint64_t, i);
        uint32_t module = (uint32_t)(frame >> LEDGER_FRAME_MODULE_SHIFT) & LEDGER_FRAME_MODULE_MASK;
        if (module != LEDGER_MODULE_UNKNOWN && module >= w->p->modules.len) {
            image(w)->inconsistent = true;
            module = LEDGER_MODULE_UNKNOWN;
        }
        *vec_push(&w->p->locations) =
            (struct profile_location){.module = module == LEDGER_MODULE_UNKNOWN ? PROFILE_NONE : module,
                                      .address = frame & LEDGER_FRAME_OFFSET_MASK,
                                      .exact = (frame & LEDGER_FRAME_EXACT) != 0};
    }
}

/*
 * Returns, for each location, the first location that is equal to it. Two threads that find a new frame at the same
 * time may each have stored it (see target/intern_table.h); the first one stands for both. The same is true for stacks.
 */
static uint32_t *same_locations(const struct work *w)
{
    struct map seen = {0};
    uint32_t *first = mem_array(w->p->locations.len, sizeof(*first));
    for (size_t i = 0; i < w->p->locations.len; i++) {
        const struct profile_location *l = &w->p->locations.at[i];
        uint64_t key[2] = {(uint64_t)l->module << 1 | l->exact, l->address};
        first[i] = (uint32_t)map_put(&seen, key, sizeof(key), i, NULL);
    }
    map_release(&seen);
    return first;
}

/* Returns the stack's number in the profile; PROFILE_NONE if the stack is invalid. */
static uint32_t take_stack(struct work *w, const struct ledger_stack *s, const uint32_t *first,
                           struct map *seen)
{
    uint32_t begin = (uint32_t)w->p->stack_locations.len, number = (uint32_t)w->p->stacks.len;
    bool added = false;
    if ((uint64_t)s->first + s->depth > w->c->count[LEDGER_STACK_FRAMES] || s->end > LEDGER_STACK_BROKEN)
        return PROFILE_NONE;
    for (uint32_t i = 0; i < s->depth; i++)
        if (*ledger_copy_at(w->c, LEDGER_STACK_FRAMES, uint32_t, s->first + i) >= w->p->locations.len)
            return PROFILE_NONE;
    for (uint32_t i = 0; i < s->depth; i++)
        *vec_push(&w->p->stack_locations) =
            first[*ledger_copy_at(w->c, LEDGER_STACK_FRAMES, uint32_t, s->first + i)];
    *vec_push(&w->p->stack_locations) = s->end; /* part of the key; removed below */
    number = (uint32_t)map_put(seen, w->p->stack_locations.at + begin, (s->depth + 1u) * sizeof(uint32_t),
                               number, &added);
    w->p->stack_locations.len = added ? begin + s->depth : begin;
    if (added)
        *vec_push(&w->p->stacks) = (struct profile_stack){.first = begin, .depth = s->depth, .end = s->end};
    return number;
}

static void take_stacks(struct work *w)
{
    uint64_t n = w->c->count[LEDGER_STACKS];
    struct map seen = {0};
    uint32_t *first = same_locations(w);
    w->stack = mem_array(n, sizeof(*w->stack));
    for (uint64_t i = 0; i < n; i++) {
        w->stack[i] =
            take_stack(w, ledger_copy_at(w->c, LEDGER_STACKS, struct ledger_stack, i), first, &seen);
        if (w->stack[i] == PROFILE_NONE)
            image(w)->inconsistent = true;
    }
    map_release(&seen);
    free(first);
}

static void take_threads(struct work *w)
{
    for (uint64_t i = 0; i < w->c->count[LEDGER_THREADS]; i++) {
        const struct ledger_thread *t = ledger_copy_at(w->c, LEDGER_THREADS, struct ledger_thread, i);
        struct profile_thread row = {.tid = t->tid,
                                     .ordinal = t->ordinal,
                                     .name = i ? fixed_text(w, t->name, sizeof(t->name)) : 0,
                                     .first_ns = ledger_copy_realtime(w->c, t->first_ticks)};
        *vec_push(&w->p->threads) = row;
    }
}

static struct profile_sums sums(const struct ledger_sums *s)
{
    return (struct profile_sums){.samples = s->samples,
                                 .seen_bytes = (double)s->seen_bytes,
                                 .bytes = (double)s->bytes_q / Q,
                                 .count = (double)s->count_q / Q};
}

static bool cell_fits(const struct work *w, const struct ledger_cell *l)
{
    return l->stack < w->c->count[LEDGER_STACKS] && w->stack[l->stack] != PROFILE_NONE &&
           l->thread < w->p->threads.len && l->period < w->c->count[LEDGER_PERIODS] && l->size_class < 64;
}

static void take_cells(struct work *w)
{
    const struct ledger_header *h = &w->c->header;
    uint64_t n = w->c->count[LEDGER_CELLS];
    w->cell = mem_array(n, sizeof(*w->cell));
    for (uint64_t i = 0; i < n; i++) {
        const struct ledger_cell *l = ledger_copy_at(w->c, LEDGER_CELLS, struct ledger_cell, i);
        w->cell[i] = PROFILE_NONE;
        if (!cell_fits(w, l)) {
            image(w)->inconsistent = true;
            continue;
        }
        struct profile_cell cell = {
            .stack = w->stack[l->stack],
            .thread = l->thread,
            .size_class = l->size_class,
            .period_bytes =
                ledger_copy_at(w->c, LEDGER_PERIODS, struct ledger_period, l->period)->period_bytes,
            .allocated = sums(&l->allocated),
            .freed = sums(&l->freed),
            .temporary_samples = l->temporary_samples,
            .temporary_bytes = (double)l->temporary_bytes_q / Q,
        };
        cell.at_peak = l->peak_epoch == h->peak_epoch ? sums(&l->at_peak) : profile_live(&cell);
        memcpy(cell.lifetimes, l->lifetimes, sizeof(cell.lifetimes));
        w->cell[i] = (uint32_t)w->p->cells.len;
        *vec_push(&w->p->cells) = cell;
    }
}

/*
 * Bytes that threads have counted but not yet added to the header's sum (struct ledger_shard) may lift the live memory
 * above the peak in the header. Then the live memory is the peak.
 */
static void take_peak(struct work *w)
{
    struct profile_image *i = image(w);
    double live = 0;
    vec_each (const struct profile_cell, c, &w->p->cells)
        live += profile_live(c).bytes;
    if (live <= i->peak_bytes)
        return;
    vec_each (struct profile_cell, c, &w->p->cells)
        c->at_peak = profile_live(c);
    i->peak_bytes = live;
    if (i->ended_ns)
        i->peak_ns = i->ended_ns;
}

static uint32_t cell_of(struct work *w, uint32_t cell)
{
    if (cell < w->c->count[LEDGER_CELLS] && w->cell[cell] != PROFILE_NONE)
        return w->cell[cell];
    image(w)->inconsistent = true;
    return PROFILE_NONE;
}

/*
 * Frees the pages of samples that are in the profile already: there may be millions, and profile and copy together
 * would need twice the memory. The pages read as zeros from then on, which means that there are no samples.
 */
static void give_back(struct work *w, uint64_t from, uint64_t to)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), table = (uintptr_t)w->c->table[LEDGER_SAMPLES];
    uintptr_t start = (table + from * sizeof(struct ledger_sample) + page - 1) & ~(page - 1);
    uintptr_t end = (table + to * sizeof(struct ledger_sample)) & ~(page - 1);
    if (end > start)
        madvise((void *)start, end - start, MADV_DONTNEED); /* if it fails, this only costs memory */
}

static void take_samples(struct work *w)
{
    for (uint64_t i = 0; i < w->c->count[LEDGER_SAMPLES]; i++) {
        if (i && i % SAMPLES_AT_ONCE == 0)
            give_back(w, i - SAMPLES_AT_ONCE, i);
        const struct ledger_sample *s = ledger_copy_at(w->c, LEDGER_SAMPLES, struct ledger_sample, i);
        uint32_t cell = s->address ? cell_of(w, s->cell) : PROFILE_NONE;
        if (cell == PROFILE_NONE)
            continue;
        *vec_push(&w->p->samples) = (struct profile_sample){
            .cell = cell,
            .serial = s->serial,
            .address = s->address,
            .size_bytes = s->size_bytes,
            .slack_bytes = s->slack_bytes == LEDGER_SLACK_UNKNOWN ? PROFILE_SLACK_UNKNOWN : s->slack_bytes,
            .born_ns = ledger_copy_realtime(w->c, s->born_ticks)};
    }
}

static void take_frees(struct work *w)
{
    for (uint64_t i = 0; i < w->c->count[LEDGER_FREES]; i++) {
        const struct ledger_free *f = ledger_copy_at(w->c, LEDGER_FREES, struct ledger_free, i);
        uint32_t cell = f->number ? cell_of(w, f->cell) : PROFILE_NONE;
        if (cell == PROFILE_NONE)
            continue;
        bool stack_known = f->stack < w->c->count[LEDGER_STACKS];
        *vec_push(&w->p->frees) = (struct profile_free){
            .cell = cell,
            .serial = f->serial,
            .address = f->address,
            .size_bytes = f->size_bytes,
            .born_ns = ledger_copy_realtime(w->c, f->born_ticks),
            .freed_ns = ledger_copy_realtime(w->c, f->freed_ticks),
            .stack = stack_known ? w->stack[f->stack] : PROFILE_NONE,
            .location = f->caller < w->p->locations.len ? f->caller : PROFILE_NONE,
            .thread = f->thread < w->p->threads.len ? f->thread : PROFILE_NONE,
            .reallocated = f->reallocated != 0,
        };
    }
}

struct profile *ledger_profile_stacks(struct ledger_copy *c, uint32_t **number)
{
    struct work w = {.c = c, .p = profile_new()};
    take_image(&w);
    take_modules(&w);
    take_locations(&w);
    take_stacks(&w);
    *number = w.stack;
    return w.p;
}

static void take_stack_numbers(struct work *w)
{
    for (uint32_t i = 0; i < w->c->count[LEDGER_STACKS]; i++)
        if (w->stack[i] != PROFILE_NONE)
            *vec_push(&w->p->stack_numbers) =
                (struct profile_stack_number){.number = i, .stack = w->stack[i]};
}

struct profile *ledger_profile(struct ledger_copy *c)
{
    struct work w = {.c = c, .p = profile_new()};
    take_image(&w);
    take_modules(&w);
    take_locations(&w);
    take_stacks(&w);
    if (c->header.events_have_stacks)
        take_stack_numbers(&w);
    take_threads(&w);
    take_cells(&w);
    take_peak(&w);
    take_samples(&w);
    c->count[LEDGER_SAMPLES] = 0;
    take_frees(&w);
    free(w.stack);
    free(w.cell);
    return w.p;
}
