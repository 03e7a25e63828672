/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_PROFILE_PAIR_H
#define MODEL_PROFILE_PAIR_H

/*
 * Two profiles on one set of tables: a process, thread, stack or cell that both have is one entry here, with
 * the sums of each side. profile_diff.h compares the sides.
 *
 * Runs in: the tool. Threads: one at a time. Owns: all it points to, but the two profiles.
 *
 * What is the same
 *
 *   images   images of the same id are one image at two moments. The others are matched by name (of the executable,
 *            else of the process). If each side has only one program among these others, the two are matched, whatever
 *            their names: they are two versions of it.
 *   stacks   if both sides hold only moments of the same images: the same code, address by address. Else the same
 *            functions, with inlined ones, in the same modules by name (without directories and the text after ".so";
 *            the executables of two versions are one). So stacks match wherever the modules were loaded, and after the
 *            program was built anew. The names of copies that compilers make (foo.isra.0, foo.part.3) count as the name
 *            of the function. If a side has functions of one name in several files of a module, as kernels have, they
 *            are told apart by their files: by path if it is relative, else by its last part, as two versions may have
 *            been built in different places. Line numbers are then those of the later side, 0 where one function has
 *            several.
 *   threads  in one image at two moments: the same thread; else threads of the same name.
 *
 * What stayed
 *
 * Of one image at two moments, the samples that were live at both are known:
 *   - by their serials, when the earlier moment knows its single samples;
 *   - else as the samples of the later moment that were allocated before the earlier one;
 *   - and in each cell, at least as many samples as were live and cannot have been freed, given the number of frees
 *     between.
 *
 * Of two peaks only the last lower bound is known: as many as were live at the first and cannot have been
 * freed since, given the number of all frees of the cell. For a moment in the past, only those single samples
 * are known that lived on, so more may have stayed than are found. Then both sides keep a sample that should
 * have cancelled, which widens intervals and changes no estimate.
 */

#include <stdbool.h>
#include <stdint.h>

#include "model/profile/profile.h"

enum profile_pair_side { PROFILE_PAIR_BEFORE, PROFILE_PAIR_AFTER, PROFILE_PAIR_SIDES };

struct profile_pair_image {
    uint32_t images[PROFILE_PAIR_SIDES]; /* how many images of each side it combines */
    bool same;                           /* one image at two moments */
    bool still;                          /* ... both readings are of the same time */
    bool same_peak;                      /* ... both readings have the same peak */
    /* ... the readings in the two profiles; else NULL */
    const struct profile_image *of[PROFILE_PAIR_SIDES];
    enum profile_pair_side later; /* ... which of the two is the later one */
};

struct profile_pair_cell {
    struct profile_cell of[PROFILE_PAIR_SIDES]; /* the indices are those of the joint profile */
    struct profile_sums stayed;                 /* live at both moments of one image; else zero */
    struct profile_sums stayed_peak;            /* live at both peaks, as far as that is certain */
    bool of_side[PROFILE_PAIR_SIDES];           /* whether the side has such a cell */
    /* the cell counts (profile_pair_keep_fn); false: it has no sums, only a period */
    bool kept;
};

struct profile_pair {
    struct profile *profile; /* images, threads, modules, locations, lines, stacks; no cells */
    struct VEC(struct profile_pair_image) images; /* in the order of the profile's images */
    struct VEC(struct profile_pair_cell) cells;
    uint32_t *cell_of[PROFILE_PAIR_SIDES];     /* by cell of each profile: the joint one */
    uint64_t period_bytes[PROFILE_PAIR_SIDES]; /* the largest period of each side; 0: not known */
    bool by_name;  /* stacks are matched by name: the address of a location means nothing */
    bool versions; /* ... and each side has one program, taken to be the same whatever their names */
};

/** Returns whether a cell of the two profiles counts. */
typedef bool profile_pair_keep_fn(void *arg, const struct profile *p, uint32_t cell);

/** Never returns NULL. The profiles must be valid; `keep` may be NULL: all cells count. */
struct profile_pair *profile_pair_new(const struct profile *before, const struct profile *after,
                                      profile_pair_keep_fn *keep, void *arg);
void profile_pair_free(struct profile_pair *j);

/** For profile_pair.c only: finds the samples that stayed. `cells` gives, by side, the joint cell of each
 * cell of the profile. */
void profile_pair_match(struct profile_pair *j, const struct profile *const of[PROFILE_PAIR_SIDES],
                        uint32_t *const cells[PROFILE_PAIR_SIDES]);
/** Returns `whole` less `part`: never negative, and zero where no sample is left. */
struct profile_sums profile_pair_less(const struct profile_sums *whole, const struct profile_sums *part);

#endif
