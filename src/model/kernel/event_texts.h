/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_EVENT_TEXTS_H
#define MODEL_EVENT_TEXTS_H

/*
 * The texts (names of caches and programs) and the stacks that the kernel's events have, each stored once and numbered.
 * Most events have a text of one of the latest ones, so these are compared before the map is searched.
 *
 * Runs in: the tool. Threads: one at a time. Owns: copies of the texts and stacks, until event_texts_release().
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/hash_map.h"
#include "base/vec.h"

/** From so many names of programs on, further ones are EVENT_TEXTS_OTHERS: a program may give itself any number. */
#define EVENT_TEXTS_COMMS_MAX 16384u
#define EVENT_TEXTS_OTHERS    "[other programs]"

#define EVENT_TEXTS_RECENT_BITS 9

/** A stack in `callers`. */
struct event_stack {
    size_t first;
    uint32_t depth;
};

/** A text that was looked up lately. Of at most 16 bytes, it is its first 8 bytes and its last 8, which may overlap. */
struct event_text {
    uint64_t head, tail;
    uint32_t len, number;
};

struct event_texts {
    struct VEC(char *) texts;
    struct VEC(struct event_stack) stacks; /* the first one is that of no stack */
    struct VEC(uint64_t) callers;
    struct map text_index, stack_index;
    struct event_text recent[1u << EVENT_TEXTS_RECENT_BITS]; /* by a quick hash */
    uint32_t n_comms;                                        /* different names of programs */
};

void event_texts_init(struct event_texts *t);
void event_texts_release(struct event_texts *t);

/** Returns a number below 2^`bits`: a hash of two numbers, for tables of what was looked up lately. */
static inline size_t event_texts_slot(uint64_t one, uint64_t other, unsigned bits)
{
    return (one * UINT64_C(0x9E3779B97F4A7C15) ^ other * UINT64_C(0xC2B2AE3D27D4EB4F)) >> (64 - bits);
}

/** Returns the number of the text; equal texts have one number. */
uint32_t event_texts_number(struct event_texts *t, const char *text);
/** The same for the name of a program. NULL is the text "". */
uint32_t event_texts_comm(struct event_texts *t, const char *comm);
/** Returns the text of a number, which stays where it is until event_texts_release(). */
static inline const char *event_texts_text(const struct event_texts *t, uint32_t number)
{
    return t->texts.at[number];
}
/** Adds a stack that is not empty; see event_texts_stack(). */
uint32_t event_texts_add_stack(struct event_texts *t, const uint64_t *stack, uint32_t depth);

/** Returns the number of the stack; that of none is 0. */
static inline uint32_t event_texts_stack(struct event_texts *t, const uint64_t *stack, uint32_t depth)
{
    return stack && depth ? event_texts_add_stack(t, stack, depth) : 0;
}

/** Returns the return addresses of a stack, the innermost first; NULL: it is that of none. */
static inline const uint64_t *event_texts_callers(const struct event_texts *t, uint32_t stack,
                                                  uint32_t *depth)
{
    *depth = t->stacks.at[stack].depth;
    return *depth ? t->callers.at + t->stacks.at[stack].first : NULL;
}

#endif
