/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_HEAPTRACK_H
#define VIEW_HEAPTRACK_H

/*
 * A profile as heaptrack_print and heaptrack_gui read it: the text that heaptrack's interpreter writes, version 3 (read
 * by heaptrack 1.4). heaptrack has no description of it but its reader, src/analyze/accumulatedtracedata.cpp.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 *
 * That format is a list of events, a profile is sums. So events are made up that add up to the estimates: of each stack
 * and power of two of the size, so many allocations and frees that calls, bytes held at the peak and at the end, and
 * temporary allocations come out; spread over the time so that what is held together follows the points of the profile.
 *
 *   bytes at the peak and at the end   those of the profile, of each stack, rounded to whole bytes; objects of a stack
 *                                      and power of two have their mean size
 *   calls                              those of the profile, one event each; above HEAPTRACK_CALLS each event stands
 *                                      for several, as large as they are together (and at least one for what there was
 *                                      of a stack and size)
 *   temporary                          as calls, but for one or a few: the reader takes that to be temporary which is
 *                                      freed right after it was allocated
 *   time of the peak                   that of the process that held most
 *   who held how much at other times   not known. Until the peak all grow alike, then those shrink that held less in
 *                                      the end; what was live at neither fills what the curve has above that
 *
 * Several processes are added, as if all had their peak at once. Of a past moment whose peak came later, the peak is
 * what is live then, or the highest point before.
 */

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

#endif
