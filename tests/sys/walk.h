/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_SYS_WALK_H
#define TESTS_SYS_WALK_H

/*
 * What the programs of the test of stacks share with it.
 *
 * Runs in: kernel and tool.
 */

struct walk_key {
    __u64 name; /* the first eight bytes of what a thread calls itself */
};

/* The last event of that name, but for the counts. */
struct walk_value {
    __u64 events, same; /* in how many the slot held the frames that the kernel's own walk found */
    __u32 ours, theirs; /* frames */
    __s32 number;
    __u32 reserved;
};

#endif
