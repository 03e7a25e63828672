/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_ATTACH_STATE_H
#define WIRE_ATTACH_STATE_H

/*
 * What the tool and an agent that it has loaded into a running process tell each other. The agent exports
 * `allium_attach_state` and `allium_attach_code`; the tool reads and writes both through /proc/PID/mem.
 *
 * At the entry of each function of the allocator the tool writes a jump to the agent's function of the same name. The
 * instructions that stood there are copied to the function's part of `allium_attach_code`, with a jump behind them to
 * the rest of the function: whoever jumps there calls the function as it was.
 *
 * Invariant: the tool trusts none of this data. If the process overwrites it, it harms only itself.
 */

#include <stdint.h>

#include "wire/ledger_grow.h"

/* The functions, in the order of agent/hooks/next.h: X(name). */
#define ATTACH_FUNCTIONS(X)                                                                                  \
    X(malloc)                                                                                                \
    X(calloc)                                                                                                \
    X(realloc)                                                                                               \
    X(free)                                                                                                  \
    X(posix_memalign)                                                                                        \
    X(aligned_alloc)                                                                                         \
    X(memalign)                                                                                              \
    X(valloc)                                                                                                \
    X(pvalloc)

enum attach_function {
#define X(name) ATTACH_##name,
    ATTACH_FUNCTIONS(X)
#undef X
        ATTACH_COUNT
};

#define ATTACH_CODE_BYTES     64u /* for each function */
#define ATTACH_ORIGINAL_BYTES 32u
#define ATTACH_MAGIC          0x3168636174746161ull /* "aattach1" */

/** An entry that is replaced by a jump, or was. */
struct attach_entry {
    uint64_t at;                             /* address of the first byte that is replaced; 0: none */
    uint64_t code;                           /* of the displaced instructions */
    uint32_t bytes;                          /* of the instructions that the jump displaces */
    uint32_t is_patched;                     /* 1 while the jump is there */
    uint8_t original[ATTACH_ORIGINAL_BYTES]; /* what stood there */
};

/** What allium_attach() answers. */
enum attach_result {
    ATTACH_NOT_CALLED,
    ATTACH_DONE,
    ATTACH_PRELOADED, /* the agent was there at the program's start */
    ATTACH_NO_ALLOCATOR,
};

struct attach_state {
    uint64_t magic, bytes; /* ATTACH_MAGIC and the size of this structure: one version fits only itself */
    /* Written by the tool before it calls allium_attach(): */
    uint64_t period_bytes, limit_bytes;
    char dir[LEDGER_PATH_BYTES]; /* of the ledgers; "": the default of the process's user */
    uint32_t sites;              /* LEDGER_WITH_* */
    uint32_t result;             /* enum attach_result; the agent's answer */
    struct attach_entry entries[ATTACH_COUNT];
    /* Written by the agent: */
    uint64_t process; /* address of the pointer to the ledger's header */
};

#endif
