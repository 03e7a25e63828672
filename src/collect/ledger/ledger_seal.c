/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/ledger/ledger_seal.h"

#include "collect/ledger/control_write.h"
#include "collect/ledger/ledger_copy.h"

#define MODE_STRICT 1

bool ledger_seal(const struct ledger_entry *entry, const struct ledger_header *header,
                 const struct proc_status *status)
{
    struct error e = {""};
    if (!status->seccomp)
        return false;
    if (status->seccomp != MODE_STRICT && (header->seccomp_filters == LEDGER_FILTERS_UNKNOWN ||
                                           status->seccomp_filters <= header->seccomp_filters))
        return false;
    return !control_change(entry, 0, LEDGER_CONTROL_SEALED, NULL, &e);
}

bool ledger_seal_opened(const struct ledger_entry *entry, int fd)
{
    struct ledger_header h;
    struct proc_status status;
    return entry->alive && !ledger_copy_header(fd, &h, NULL) && proc_status(entry->pid, &status) &&
           ledger_seal(entry, &h, &status);
}
