/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_TAGS_PAIRS_H
#define BENCH_TAGS_PAIRS_H

/* PAIRS malloc+free pairs, or calls of realloc(), by the same code, without tags and with them; each function returns
 * how many objects were made. */
#include <stdint.h>

#define PAIRS 20000u

uint64_t bare_hot(void);
uint64_t bare_replaced(void);
uint64_t bare_large(void);
uint64_t bare_resized(void);
uint64_t tagged_hot(void);
uint64_t tagged_replaced(void);
uint64_t tagged_large(void);
uint64_t tagged_resized(void);

#endif
