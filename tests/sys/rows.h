/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_SYS_ROWS_H
#define TESTS_SYS_ROWS_H

/*
 * What the programs of the test of rows share with it.
 *
 * Runs in: kernel and tool.
 */

struct rows_key {
    __u64 name; /* the first eight bytes of what a thread calls itself */
};

struct rows_value {
    __u64 events;
};

#define ROWS_DEEPEST 5u

#endif
