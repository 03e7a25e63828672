/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_TAGS_PAIRS_H
#define BENCH_TAGS_PAIRS_H

/* PAIRS malloc+free pairs by the same code, without tags and with them; how many objects were made. */
#include <stdint.h>

#define PAIRS 20000u

uint64_t bare_hot(void);
uint64_t bare_replaced(void);
uint64_t tagged_hot(void);
uint64_t tagged_replaced(void);

#endif
