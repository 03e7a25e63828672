/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes a small dense file of a ledger, which is large and sparse: for the corpus of fuzz_ledger.c.
 *
 *     pack_ledger LEDGER OUT [BYTES]     at most so many bytes of each table (4096)
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/ledger.h"

int main(int argc, char **argv)
{
    static char header[LEDGER_HEADER_BYTES];
    struct ledger_header *h = (struct ledger_header *)header;
    uint64_t most = argc > 3 ? strtoull(argv[3], NULL, 10) : 4096;
    int in = argc > 2 ? open(argv[1], O_RDONLY) : -1;
    FILE *out = argc > 2 ? fopen(argv[2], "wb") : NULL;
    if (in < 0 || !out || pread(in, header, sizeof(header), 0) != sizeof(header) || h->magic != LEDGER_MAGIC)
        return 1;
    uint64_t at = LEDGER_HEADER_BYTES;
    struct ledger_region old[LEDGER_TABLES];
    memcpy(old, h->regions, sizeof(old));
    for (int t = 0; t < LEDGER_TABLES; t++) {
        struct ledger_region *r = &h->regions[t];
        uint64_t bytes = t == LEDGER_FREES ? r->ready_bytes : r->used * r->record_bytes;
        bytes = bytes < r->ready_bytes ? bytes : r->ready_bytes;
        r->offset = at;
        r->ready_bytes = bytes < most ? bytes : most;
        at += r->ready_bytes;
    }
    fwrite(header, sizeof(header), 1, out);
    for (int t = 0; t < LEDGER_TABLES; t++) {
        char *bytes = malloc(h->regions[t].ready_bytes + 1);
        if (!bytes || pread(in, bytes, h->regions[t].ready_bytes, (off_t)old[t].offset) < 0)
            return 1;
        fwrite(bytes, 1, h->regions[t].ready_bytes, out);
        free(bytes);
    }
    return fclose(out) != 0;
}
