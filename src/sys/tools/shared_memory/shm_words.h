/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_TOOLS_SHM_WORDS_H
#define SYS_TOOLS_SHM_WORDS_H

/* Words for the arguments of calls about shared memory, as they stand in the manuals of these calls. */

#include <stdint.h>

#include "base/buf.h"

/** Appends the flags of the call, an enum shmsnoop_call; nothing if it has none. */
void shm_words_flags(struct buf *b, uint32_t call, uint32_t flags);
/** Appends the command of shmctl(): "IPC_RMID"; a number that has no name is appended as it is. */
void shm_words_command(struct buf *b, uint32_t command);
/** Appends a key as ipcs(1) has it: "0x0000162e"; "IPC_PRIVATE". */
void shm_words_key(struct buf *b, int32_t key);

#endif
