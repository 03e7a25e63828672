/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_MEMCG_H
#define BPF_MEMCG_H

/* Facts about a memory cgroup that was full. */

/** Which of its limits was reached. */
enum memcg_limit {
    MEMCG_MEMORY,
    MEMCG_MEMORY_AND_SWAP, /* of the v1 hierarchy */
};

#endif
