/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_TRACED_BPF_H
#define BPF_TRACED_BPF_H

/*
 * Which processes `allium trace --kernel` traces, and how their events are written.
 *
 * Runs in: the kernel, in the context of the event.
 */

#include "bpf/sys.bpf.h"

#include "bpf/kernel_events.h"

#include "bpf/kernel_ring.bpf.h"
#include "wire/kernel_event_schema.h"

/* What the first process does that allium forks from now on: 1: it is traced; 2: only the offsets of CPUs are looked
 * for, in its context. */
__u32 awaits_first = 0;

/* A bit for each traced process. It stays after the end of the process, until another one gets the number. */
__u64 traced[KERNEL_EVENTS_PIDS / 64] SEC(".bss.traced");

/* ---- an event: the head, and the fields as the schema lists them ---- */

#define TYPE_U32     __u32
#define TYPE_S32     __s32
#define TYPE_HEX32   __u32
#define TYPE_U64     __u64
#define TYPE_S64     __s64
#define TYPE_HEX64   __u64
#define TYPE_BYTES64 __u64

#define FIELD(name, type) TYPE_##type name;
#define LABEL(name, list) __s32 name;
#define TEXT(name, bytes) char name[bytes];
#define EVENT(number, group, name, fields)                                                                   \
    enum { NUMBER_##name = number };                                                                         \
    struct event_##name {                                                                                    \
        struct ring_event head;                                                                              \
        fields                                                                                               \
    };
KERNEL_EVENT_SCHEMA(EVENT, FIELD, LABEL, TEXT)
#undef EVENT

const volatile bool counts_wanted = false;

/* An event of the current thread, `self`, in its place in the ring. Its other members are to be set by name, before
 * END(). */
#define BEGIN(name)                                                                                          \
    enum { WORDS = (sizeof(struct event_##name) + 7) / 8 };                                                  \
    struct kernel_ring_cpu *first;                                                                           \
    const __u64 ids = ids_of(self);                                                                          \
    if (counts_wanted)                                                                                       \
        count(KERNEL_EVENTS_WANTED);                                                                         \
    uint64_t *const words = ring_begin(&first, WORDS);                                                       \
    struct event_##name *const e = (struct event_##name *)words;                                             \
    if (!e)                                                                                                  \
        return 0;                                                                                            \
    __builtin_memset(words + 1, 0, 8 * (WORDS - 1)); /* of texts, and of padding, not all is set */          \
    e->head.id = NUMBER_##name;                                                                              \
    e->head.size = WORDS;                                                                                    \
    e->head.thread = (__u32)ids;                                                                             \
    e->pid = ids >> 32

#define END() ring_end(first, WORDS)

/* ---- whose events are wanted ---- */

static __always_inline __u64 *traced_word(__u32 tgid)
{
    return &traced[tgid / 64 & (KERNEL_EVENTS_PIDS / 64 - 1)];
}

static __always_inline __u64 traced_bit(__u32 tgid)
{
    return 1ull << (tgid & 63);
}

static __always_inline bool is_traced(__u32 tgid)
{
    return *(volatile __u64 *)traced_word(tgid) & traced_bit(tgid);
}

/* Returns whether events of the thread are wanted. `self`: process << 32 | thread, of the initial namespace. */
static __always_inline bool wants(__u64 self)
{
    return runs() && is_traced(self >> 32);
}

/* Returns current_ids(). */
static __always_inline __u64 ids_of(__u64 self)
{
    return config.pid_namespace ? ids_in_namespace() : self;
}

#endif
