/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_HEAPTRACK_H
#define VIEW_HEAPTRACK_H

/*
 * A profile in the format of heaptrack_print and heaptrack_gui: the text that heaptrack's interpreter writes, version 3
 * (read by heaptrack 1.4). The only description of it is its reader, src/analyze/accumulatedtracedata.cpp.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 *
 * The format is a list of events. A trace has them, and heaptrack_write_lives() writes them as they happened. Other
 * profiles are sets of sums. So heaptrack_write() makes up events that add up to the estimates:
 * for each stack and power of two of the size, allocations and frees in such numbers that calls, bytes at the peak and
 * at the end, and temporary allocations are right. They are spread over the time so that the total follows the points
 * of the profile.
 *
 *   bytes at the peak and at the end   those of the profile, for each stack, rounded to whole bytes; objects of a stack
 *                                      and power of two have their mean size
 *   calls                              those of the profile, one event each. Above HEAPTRACK_CALLS each event stands
 *                                      for several, and is as large as these together (there is at least one event for
 *                                      each stack and size)
 *   temporary                          as calls, but for one or a few: the reader counts an allocation as temporary if
 *                                      it is freed right after it was made
 *   time of the peak                   that of the process with the highest peak
 *   memory of a stack at other times   not known. Until the peak all stacks grow alike, then those shrink that hold
 *                                      less at the end; objects that are live at neither time fill the rest of the
 *                                      curve, and become smaller if they fit nowhere below the peak
 *
 * Several processes are added up as if all had their peaks at once. For a time in the past, before the peak, the peak
 * is the live memory then, or the highest point before.
 */

#include "base/error.h"
#include "model/profile/object_accounts.h"
#include "model/profile/profile.h"
#include "view/text/sink.h"

/* heaptrack_print takes some 3 s to read these, from 120 MB or, compressed, a hundredth of that. */
#define HEAPTRACK_CALLS 10000000u

struct heaptrack_options {
    /* Which cells count. NULL: all. */
    bool (*keep)(void *arg, const struct profile *p, uint32_t cell);
    void *arg;
};

/** Returns how many calls an event stands for: 1 as a rule. The profile must be valid. */
uint64_t heaptrack_write(struct sink *out, const struct profile *p, const struct heaptrack_options *o);

/** Tells the listener of the lives of all objects, in their order. Returns 0, or -errno with a line. */
typedef int heaptrack_play_fn(void *arg, const struct object_listener *listener, struct error *e);
/**
 * Writes the beginnings and ends of lives that `play` tells of, whose cells are those of the profile: so sizes and the
 * curve are exact, and the peak is that of all processes together. The reader takes an allocation for temporary if the
 * next event of any thread is the free of an object of the same size and stack. It may also take the very first object
 * for temporary, if no other has its size and stack and another free comes just before that of the object: the object
 * has number 0 in the file, and after a free the reader takes 0 for the last allocation. Returns what `play` returns.
 */
int heaptrack_write_lives(struct sink *out, const struct profile *p, const struct heaptrack_options *o,
                          heaptrack_play_fn *play, void *arg, struct error *e);

#endif
