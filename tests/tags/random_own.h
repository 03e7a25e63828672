/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_TAGS_RANDOM_OWN_H
#define TESTS_TAGS_RANDOM_OWN_H

/* What random.c and random_maps.c have in common. */

#include <stdbool.h>
#include <stdint.h>

#include "random.h"

#define SLOTS  96
#define RANGES 14

/* Mapped pages that nobody else unmaps, of any number of mappings. */
struct range {
    char *start; /* NULL: none */
    size_t pages;
};

struct self {
    uint64_t seed;
    void *slots[SLOTS];
    struct range ranges[RANGES];
    unsigned depth; /* of forks */
    bool first;     /* the thread that began the process */
    bool handler;   /* of a signal: in which no stream may be used */
};

uint32_t random_draw(struct self *s, uint32_t below);
/** Of tags and of code without them. */
extern bool random_foreign;
/** A place of that kind, of the program's own. */
const struct place *random_place(struct self *s, bool (*fits)(enum kind));

/** Maps, unmaps or moves something. */
void random_maps_step(struct self *s);
/** What the thread has is left to others, or unmapped, or with `leaks` as likely as not left to nobody. */
void random_maps_leave(struct self *s, bool leaks);
/** All of it is unmapped, and what waits for others. */
void random_maps_drain(struct self *s);

#endif
