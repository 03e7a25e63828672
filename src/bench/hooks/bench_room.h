/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_ROOM_H
#define BENCH_ROOM_H

/*
 * A mount namespace of the helper's own (mount_namespaces(7)), for peers that leave files: LTTng, uftrace. What they
 * write vanishes with the last process in it, however that ends.
 *
 * Runs in: the helper of `allium bench`. Threads: the first, while there is no other.
 */

#include <stdbool.h>

#define BENCH_ROOM_FOLDER "/run/allium-bench" /* in a file system that only the helper and its children see */
#define BENCH_ROOM_NEEDS  "a mount namespace: run as root, or permit user namespaces"

/** Makes the namespace, with empty file systems in memory on /run and /dev/shm. Returns whether that was possible. */
bool bench_room_make(void);
/** Runs a command without input and output. Returns its exit code, or 127. */
int bench_room_run(const char *const *argv);

/**
 * For a process, the keeper, that starts programs, and ends them when the helper has ended, however that happens:
 * ignores all signals, and becomes the parent of each process whose own parent, started by the keeper, has ended.
 */
void bench_room_keep(void);
/** In the keeper: kills all that it has started, waits for it, and exits. */
_Noreturn void bench_room_end(void);

#endif
