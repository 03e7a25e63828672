/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_VEC_H
#define BASE_VEC_H

/*
 * A typed growable array: struct { T *at; size_t len, cap; }. Not for the target.
 *
 *     struct names VEC(char *);            declares `struct names`
 *     struct names n = {0};
 *     *vec_push(&n) = mem_strdup("a");     the new element is zeroed
 *     vec_each(char *, name, &n) puts(*name);
 *     vec_release(&n);                     frees the array, not what its elements own
 */

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define VEC(T)                                                                                               \
    {                                                                                                        \
        T *at;                                                                                               \
        size_t len, cap;                                                                                     \
    }

#define vec_push(v)                                                                                          \
    (vec_room((void **)&(v)->at, &(v)->cap, (v)->len, sizeof(*(v)->at)),                                     \
     memset(&(v)->at[(v)->len], 0, sizeof(*(v)->at)), &(v)->at[(v)->len++])

#define vec_each(T, e, v) for (T *e = (v)->at; e && e < (v)->at + (v)->len; e++)

#define vec_release(v)                                                                                       \
    do {                                                                                                     \
        free((v)->at);                                                                                       \
        (v)->at = NULL;                                                                                      \
        (v)->len = (v)->cap = 0;                                                                             \
    } while (0)

/** Makes room for one more element; used by vec_push. */
static inline void vec_room(void **at, size_t *cap, size_t len, size_t elem_bytes)
{
    if (len < *cap)
        return;
    *cap = *cap ? *cap * 2 : 8;
    *at = mem_resize(*at, *cap * elem_bytes);
}

#endif
