/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_MEMCG_H
#define BPF_MEMCG_H

/*
 * What is told of a memory cgroup that was full.
 *
 * Runs in: kernel and tool.
 */

/** Which of its limits was met. */
enum memcg_limit {
    MEMCG_MEMORY,
    MEMCG_MEMORY_AND_SWAP, /* of the v1 hierarchy */
};

#endif
