/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_PROFILE_PAIR_H
#define MODEL_PROFILE_PAIR_H

/*
 * Two profiles on one set of tables: the same process, thread, stack and cell of both is one here, with the sums of
 * each side. What profile_diff.h compares.
 *
 * Runs in: the tool. Threads: one at a time. Owns: all it points to, but the two profiles.
 *
 * What is the same
 *
 *   images   those of the same id are one image at two moments. The rest are one for each name (of the executable, else
 *            of the process); where each source has only one program among the rest, these are one, whatever their
 *            names: two versions of it.
 *   stacks   as long as all that both sources hold are moments of the same images: the same code, address by address.
 *            Else the same functions, inlined ones too, in the same modules by name (without directories and what
 *            follows ".so"; the executables of two versions are one): so they match wherever they were loaded, and
 *            after the program was built anew. Line numbers are then those of the later source, 0 where one function
 *            has several.
 *   threads  of one image at two moments: the same thread; else those of the same name.
 *
 * What stayed
 *
 * Of one image at two moments, the samples that were live at both are known:
 *   - by their serials, when the earlier moment knows its single samples;
 *   - else as those of the later moment that were born before the earlier one;
 *   - at least as many of a cell as were live and cannot have been freed, by the number of its frees between.
 * Of two peaks only the last is known: as many as were live at the first and cannot have been freed since, by the
 * number of all frees of the cell. A moment in the past knows single samples only as far as they lived on: there may be
 * more that stayed than are found. Then both sides keep a sample that should have cancelled, which widens intervals and
 * changes no estimate.
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/profile/profile.h"

enum profile_pair_side { PROFILE_PAIR_BEFORE, PROFILE_PAIR_AFTER, PROFILE_PAIR_SIDES };

struct profile_pair_image {
    uint32_t images[PROFILE_PAIR_SIDES]; /* how many of each side it is */
    bool same;                           /* one image at two moments */
    bool still;                          /* ... which are one moment */
    bool same_peak;                      /* ... whose peaks are one */
    const struct profile_image
        *of[PROFILE_PAIR_SIDES];  /* ... the two readings, of the two profiles; else NULL */
    enum profile_pair_side later; /* ... and which of them is the later one */
};

struct profile_pair_cell {
    struct profile_cell of[PROFILE_PAIR_SIDES]; /* indices in the joint profile */
    struct profile_sums stayed;                 /* live at both moments of one image; else nothing */
    struct profile_sums stayed_peak;            /* live at the peaks of both, as far as that is certain */
    bool of_side[PROFILE_PAIR_SIDES];           /* a side has such a cell */
    bool kept;                                  /* else it has no sums, only a period */
};

struct profile_pair {
    struct profile *profile; /* images, threads, modules, locations, lines, stacks; no cell */
    struct VEC(struct profile_pair_image) images; /* as the profile's */
    struct VEC(struct profile_pair_cell) cells;
    uint64_t period_bytes[PROFILE_PAIR_SIDES]; /* the largest of each side; 0: not known */
    bool by_name;  /* stacks are matched so: then a location's address means nothing */
    bool versions; /* ... and each source has one program, taken to be the same whatever their names */
};

/** Which cells of the two profiles count. */
typedef bool profile_pair_keep_fn(void *arg, const struct profile *p, uint32_t cell);

/** Never NULL. The profiles must be valid; `keep` may be NULL: all. */
struct profile_pair *profile_pair_new(const struct profile *before, const struct profile *after,
                                      profile_pair_keep_fn *keep, void *arg);
void profile_pair_free(struct profile_pair *j);

/** For profile_pair.c only: finds what stayed. `cells` says by side which joint cell each cell of a profile is. */
void profile_pair_match(struct profile_pair *j, const struct profile *const of[PROFILE_PAIR_SIDES],
                        uint32_t *const cells[PROFILE_PAIR_SIDES]);
/** What is left of `whole` without `part`: never negative, and nothing at all where no sample is left. */
struct profile_sums profile_pair_less(const struct profile_sums *whole, const struct profile_sums *part);

#endif
