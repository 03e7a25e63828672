/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/stack_samples.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "collect/unwind/stack_dump.h"
#include "collect/unwind/user_stack.h"
#include "sys/resolver.h"

#define DEPTH_MAX   512u       /* frames of a stack */
#define NUMBERS_MAX (4u << 20) /* samples whose stacks are known; then the older half is forgotten */

struct samples {
    struct ring_buffer *ring;
    int fd;
    struct VEC(
        uint32_t) stack_of; /* by the sample's number, from `first` on: the stack's number + 1, 0: none */
    uint32_t first;
    struct map known;         /* a stack's frames -> its number */
    struct VEC(char *) texts; /* as many as --stack-slots says: a long run may meet ever new stacks */
    struct stack_samples_counts counts;
    struct user_frame frames[DEPTH_MAX];
};

static const struct {
    const char *key, *words;
} ends[STACK_DUMP_ENDS] = {
    [STACK_DUMP_DEEP] = {"too_deep", "more frames than the limit"},
    [STACK_DUMP_CUT] = {"cut", "beyond the bytes that are taken"},
    [STACK_DUMP_UNREADABLE] = {"unreadable", "in memory that could not be read"},
    [STACK_DUMP_NO_FILE] = {"without_file", "called from code that is in no file"},
    [STACK_DUMP_NO_RULES] = {"without_rules", "code without unwind rules"},
    [STACK_DUMP_BROKEN] = {"broken", "unwind rules that do not fit"},
};

const char *stack_samples_end_key(enum stack_dump_end end)
{
    return ends[end].key;
}

const char *stack_samples_end_words(enum stack_dump_end end)
{
    return ends[end].words;
}

void stack_samples_size_maps(struct sys_session *s)
{
    struct bpf_map *ring = bpf_object__find_map_by_name(s->object, "samples");
    struct bpf_map *rooms = bpf_object__find_map_by_name(s->object, "sample_rooms");
    /* Without it there is one room, of the size that it has: before 6.8 the verifier looks at code that nobody
     * calls, too. */
    if (!ring || !rooms || !s->settings.config.sample)
        return;
    bpf_map__set_max_entries(ring, s->settings.sample_ring_bytes);
    bpf_map__set_max_entries(rooms, (uint32_t)libbpf_num_possible_cpus());
}

/* Everything that tells the stack from another, as it will be shown. */
static void add_frames_key(struct buf *key, const struct user_frame *f, size_t n, enum stack_dump_end end)
{
    buf_addch(key, (char)end);
    for (; n--; f++) {
        buf_add(key, &f->address, sizeof(f->address));
        buf_add(key, f->module.path, strlen(f->module.path) + 1);
        if (f->module.root)
            buf_addstr(key, f->module.root);
        buf_addch(key, '\0');
    }
}

#define IN_EXEC "[within exec: the old program's stack is gone]\n"
#define NO_ROOM "[lost: no room for the stack, see --stack-slots]\n"
#define WORDS   2u /* of them */

/* The number of the one stack of all samples of which only this is known. */
static uint32_t words_number(struct samples *p, const char *words)
{
    bool added;
    size_t number = map_put(&p->known, words, strlen(words) + 1, p->texts.len, &added);
    if (added)
        *vec_push(&p->texts) = mem_strdup(words);
    return (uint32_t)number;
}

static uint32_t stack_number(struct sys_session *s, size_t n, enum stack_dump_end end)
{
    struct samples *p = s->samples;
    struct buf key = BUF_INIT, text = BUF_INIT;
    bool added;
    add_frames_key(&key, p->frames, n, end);
    if (p->texts.len >= s->settings.stacks_max + WORDS && map_get(&p->known, key.data, key.len) == MAP_NONE) {
        buf_release(&key);
        p->counts.no_room++;
        return words_number(p, NO_ROOM);
    }
    size_t number = map_put(&p->known, key.data, key.len, p->texts.len, &added);
    buf_release(&key);
    if (!added)
        return (uint32_t)number;
    for (size_t i = 0; i < n; i++)
        resolver_add_user_frame(s->names, &text, &p->frames[i]);
    if (end != STACK_DUMP_WHOLE)
        buf_printf(&text, "[%s]\n", ends[end].words);
    *vec_push(&p->texts) = buf_detach(&text);
    return (uint32_t)number;
}

static void store_stack(struct samples *p, uint32_t sample, uint32_t stack)
{
    if (p->stack_of.len >= NUMBERS_MAX) {
        size_t half = p->stack_of.len / 2;
        memmove(p->stack_of.at, p->stack_of.at + half, (p->stack_of.len - half) * sizeof(*p->stack_of.at));
        p->stack_of.len -= half;
        p->first = (p->first + (uint32_t)half) % SYS_SAMPLE_NUMBERS;
    }
    const uint32_t at = (sample - p->first) % SYS_SAMPLE_NUMBERS;
    if (at >= NUMBERS_MAX)
        return; /* it is not ours */
    while (p->stack_of.len <= at)
        *vec_push(&p->stack_of) = 0;
    p->stack_of.at[at] = stack + 1;
}

/* The record as what can be walked; false: it is none. */
static bool open_record(const void *data, size_t bytes, struct stack_dump *c)
{
    const struct sys_sample *r = data;
    if (bytes < sizeof(*r))
        return false;
    const unsigned char *at = (const unsigned char *)(r + 1);
    size_t left = bytes - sizeof(*r);
    *c = (struct stack_dump){.regs = {0}};
    c->arguments = r->arguments;
    memcpy(c->regs, r->regs, sizeof(r->regs));
    for (unsigned i = 0; i < SYS_SAMPLE_RUNS; i++) {
        const struct sys_run *run = &r->run[i];
        if (run->bytes > left)
            return false;
        c->run[i] = (struct stack_dump_run){run->from, run->bytes, run->missing, at};
        at += run->bytes;
        left -= run->bytes;
    }
    return true;
}

static int take(void *arg, void *data, size_t bytes)
{
    struct sys_session *s = arg;
    struct samples *p = s->samples;
    const struct sys_sample *r = data;
    struct stack_dump c;
    enum stack_dump_end end;
    if (sys_loses(s) || !open_record(data, bytes, &c))
        return 0;
    address_spaces_drain(resolver_spaces(s->names));
    size_t n =
        user_stacks_walk(resolver_users(s->names), (pid_t)r->pid, r->time_ns, &c, p->frames, DEPTH_MAX, &end);
    p->counts.taken++;
    /* Within exec: the memory is new, but the registers are still those of the program that asked for it. */
    if (!c.run[0].bytes && n == 1 && p->frames[0].kind == USER_FRAME_NOT_MAPPED) {
        p->counts.in_exec++;
        store_stack(p, r->number, words_number(p, IN_EXEC));
        return 0;
    }
    p->counts.ends[end]++;
    p->counts.frames += n;
    for (size_t i = 0; i < n; i++)
        p->counts.not_found +=
            p->frames[i].kind == USER_FRAME_NOT_MAPPED || p->frames[i].kind == USER_FRAME_LOST;
    store_stack(p, r->number, stack_number(s, n, end));
    return 0;
}

int stack_samples_open(struct sys_session *s, struct error *e)
{
    _Static_assert(SYS_SAMPLE_REGS == REG_COUNT && SYS_SAMPLE_RUNS == STACK_DUMP_RUNS, "both sides agree");
    if (!s->settings.config.sample)
        return 0;
    if (!resolver_spaces(s->names))
        return error_set(e, EOPNOTSUPP,
                         "--sample needs events of memory mappings, which perf does not deliver here");
    struct samples *p = s->samples = mem_alloc(sizeof(*p));
    p->fd = sys_map(s, "samples");
    p->ring = ring_buffer__new(p->fd, take, s, NULL);
    if (!p->ring)
        return error_set(e, errno, "cannot read the ring of samples: %s", strerror(errno));
    return 0;
}

void stack_samples_close(struct sys_session *s)
{
    struct samples *p = s->samples;
    if (!p)
        return;
    ring_buffer__free(p->ring);
    vec_each (char *, text, &p->texts)
        free(*text);
    vec_release(&p->texts);
    vec_release(&p->stack_of);
    map_release(&p->known);
    free(p);
    s->samples = NULL;
}

int stack_samples_fd(const struct sys_session *s)
{
    return s->samples ? s->samples->fd : -1;
}

int stack_samples_read(struct sys_session *s)
{
    return s->samples ? ring_buffer__consume(s->samples->ring) : 0;
}

int stack_samples_unify(const struct sys_session *s, int id)
{
    const struct samples *p = s->samples;
    if (id < SYS_STACK_SAMPLED)
        return id;
    if (id & SYS_STACK_OF_KERNEL)
        return SYS_STACK_NONE;
    uint32_t at = ((uint32_t)(id - SYS_STACK_SAMPLED) - p->first) % SYS_SAMPLE_NUMBERS;
    uint32_t stack = at < p->stack_of.len ? p->stack_of.at[at] : 0;
    return stack ? SYS_STACK_UNIFIED + (int)(stack - 1) : SYS_STACK_LOST;
}

const char *stack_samples_text(const struct sys_session *s, int id)
{
    const struct samples *p = s->samples;
    int unified = p ? stack_samples_unify(s, id) : -1;
    return unified >= SYS_STACK_UNIFIED ? p->texts.at[unified - SYS_STACK_UNIFIED] : sys_stack_loss(unified);
}

const struct stack_samples_counts *stack_samples_counted(const struct sys_session *s)
{
    return s->samples ? &s->samples->counts : NULL;
}
