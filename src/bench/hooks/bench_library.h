/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_LIBRARY_H
#define BENCH_LIBRARY_H

/*
 * Libraries that lie beside the helper, and are loaded only for the mechanism or the sink that needs them.
 *
 * Runs in: the helper of `allium bench`. Threads: the first. Owns: nothing; libraries stay loaded.
 */

/**
 * Loads the library. Returns 0 and sets *library; -ENOENT: it is not beside the helper; -ELIBACC: it or a library that
 * it needs cannot be loaded.
 */
int bench_library_open(const char *name, void **library);

#endif
