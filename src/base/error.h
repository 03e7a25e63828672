/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

/*
 * How the tool reports errors. A function returns 0 or -errno, and writes one line for the user (what is wrong, where,
 * what to do) into a struct error that the caller owns. Only src/cli prints this line.
 */

struct error {
    char text[512]; /* no newline, no "allium:" prefix; "" if no line was written */
};

/** Writes the line and returns -code (code is a positive errno). `e` may be NULL. */
int error_set(struct error *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
