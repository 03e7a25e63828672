/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/ledger/ledger_seal.h"

#include "collect/ledger/control_write.h"
#include "collect/ledger/ledger_copy.h"
#include "collect/process/proc.h"

#define MODE_STRICT 1

bool ledger_seal(const struct ledger_entry *entry, const struct ledger_header *header)
{
    unsigned mode, filters;
    struct error e = {""};
    if (!proc_seccomp(entry->pid, &mode, &filters) || !mode)
        return false;
    if (mode != MODE_STRICT &&
        (header->seccomp_filters == LEDGER_FILTERS_UNKNOWN || filters <= header->seccomp_filters))
        return false;
    return !control_change(entry, 0, LEDGER_CONTROL_SEALED, NULL, &e);
}

bool ledger_seal_opened(const struct ledger_entry *entry, int fd)
{
    struct ledger_header h;
    return entry->alive && !ledger_copy_header(fd, &h, NULL) && ledger_seal(entry, &h);
}
