/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_LEDGER_SEAL_H
#define COLLECT_LEDGER_SEAL_H

/*
 * Seals processes that entered seccomp in a way that their library has not seen (a `syscall` instruction of their own,
 * or one more filter in a container): the library then makes no further system call for growth.
 */

#include <stdbool.h>

#include "collect/ledger/ledger_dir.h"
#include "collect/process/proc.h"
#include "wire/ledger.h"

/**
 * Seals the running process of this ledger if its status shows more filters than there were when the ledger was made,
 * or strict mode. Returns whether it is sealed now. `header`: of the ledger.
 */
bool ledger_seal(const struct ledger_entry *entry, const struct ledger_header *header,
                 const struct proc_status *status);
/** The same for a process whose ledger has just been opened as `fd`. */
bool ledger_seal_opened(const struct ledger_entry *entry, int fd);

#endif
