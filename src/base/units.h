/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

/*
 * Sizes and durations as people write and read them: 512K, 1.5 MiB, 250ms, 3.2 s.
 */

#include <stddef.h>
#include <stdint.h>

#define UNITS_TEXT_BYTES 32

/** Parses "512", "64K", "1.5MiB", "1T" (powers of 1024, case ignored, optional i and B). Returns 0, -EINVAL
 * or -ERANGE. */
int units_parse_size(const char *text, uint64_t *bytes);
/** Parses "250ms", "5m", "1h30m", "2d", "1.5s"; a bare number is seconds. Returns 0, -EINVAL or -ERANGE. */
int units_parse_duration(const char *text, uint64_t *ns);
/**
 * Formats "0 B", "812 B", "1.50 KiB", "12.3 MiB", "512 KiB", with three significant digits. Returns `out`.
 */
char *units_format_size(char out[static UNITS_TEXT_BYTES], double bytes);
/** Formats "85 ns", "1.20 ms", "3.2 s", "4m10s", "2h05m", "3d04h". Returns `out`. */
char *units_format_duration(char out[static UNITS_TEXT_BYTES], double ns);
/** Formats the counts "0", "999", "12.3k", "4.56M". Returns `out`. */
char *units_format_count(char out[static UNITS_TEXT_BYTES], double count);

#endif
