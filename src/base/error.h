/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

/*
 * The error scheme of the tool. A function returns 0 or -errno, and puts one line for a person (what is
 * wrong, where, what to do) into a struct error that the caller owns. Only src/cli prints it.
 */

struct error {
    char text[512]; /* no newline, no "allium:" prefix; "" when nothing was said */
};

/** Writes the line and returns -code (code is a positive errno). `e` may be NULL. */
int error_set(struct error *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
