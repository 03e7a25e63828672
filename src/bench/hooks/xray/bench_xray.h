/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_XRAY_H
#define BENCH_XRAY_H

/*
 * Functions that clang has compiled for XRay (bench_xray_functions.c), and the part of XRay's runtime library that
 * switches them (its own header is for C++). The symbols are weak: where XRay was missing when the helper was built,
 * they are NULL.
 *
 * Runs in: the helper of `allium bench`.
 */

#include <stdint.h>

uint64_t bench_xray_work(uint64_t x) __attribute__((weak));

/** `type`: 0 at the entry of a function, else at its exit. Returns 1, or 0 if XRay does not work here. */
int __xray_set_handler(void (*handler)(int32_t function, int type)) __attribute__((weak));
/** Switch all functions on or off, or one. Each returns 1, or another number if that was not possible. */
int __xray_patch(void) __attribute__((weak));
int __xray_unpatch(void) __attribute__((weak));
int __xray_patch_function(int32_t function) __attribute__((weak));
int __xray_unpatch_function(int32_t function) __attribute__((weak));

#endif
