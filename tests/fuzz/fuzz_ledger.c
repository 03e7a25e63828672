/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reader of ledgers on hostile input: whatever a file claims, a valid profile comes out, or one line of error. The
 * mutator keeps magic, version and record sizes as they are, so that the rest is reached.
 */
#include "require.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collect/accounts/site_accounts.h"
#include "collect/accounts/tag_accounts.h"
#include "collect/ledger/ledger_copy.h"
#include "collect/ledger/ledger_profile.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Overwrites a word somewhere with a number that is likely to matter: an index near an end, a huge one, a small one. */
static void poke(uint8_t *data, size_t size, unsigned *seed)
{
    static const uint64_t numbers[] = {0,          1,          2,          0x7fff,    0xffff,
                                       0x7fffffff, 0xffffffff, UINT64_MAX, 1ull << 48};
    size_t at = (size_t)rand_r(seed) % (size - 8) & ~(size_t)3;
    uint64_t n = numbers[(size_t)rand_r(seed) % (sizeof(numbers) / sizeof(*numbers))];
    memcpy(data + at, &n, rand_r(seed) & 1 ? 8 : 4);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    if (size < LEDGER_HEADER_BYTES + 64 || seed % 4 == 0)
        size = LLVMFuzzerMutate(data, size, max_size);
    else
        for (int n = 1 + (int)(seed % 7); n; n--)
            poke(data, size, &seed);
    if (size < sizeof(struct ledger_header))
        return size;
    struct ledger_header *h = (struct ledger_header *)data;
    h->magic = LEDGER_MAGIC;
    if (rand_r(&seed) % 32) {
        h->version = LEDGER_VERSION;
        h->header_bytes = LEDGER_HEADER_BYTES;
    }
    for (int t = 0; t < LEDGER_TABLES; t++)
        if (rand_r(&seed) % 64)
            h->regions[t].record_bytes = ledger_record_bytes((enum ledger_table)t);
    return size;
}

static void read_tags(const struct ledger_copy *copy)
{
    struct tags_reading r = {.process = {.pid = 1}};
    struct alloc_texts texts = {.bytes = BUF_INIT};
    struct accounts a = {.rows = {0}};
    tags_from_copy(&r, copy, &texts);
    require(r.rows.len == r.module.len, "rows without a module");
    vec_each (const struct account_row, row, &r.rows)
        *vec_push(&a.rows) = *row;
    accounts_merge(&a, &texts);
    require(a.rows.len <= r.rows.len, "rows of nothing");
    tags_reading_release(&r);
    accounts_release(&a);
    alloc_texts_release(&texts);
}

static void read_sites(const struct ledger_copy *copy)
{
    struct sites_reading r = {.process = {.pid = 1}};
    struct alloc_texts texts = {.bytes = BUF_INIT};
    sites_from_copy(&r, copy, &texts);
    require(r.rows.len == r.module.len, "sites without a module");
    vec_each (const uint32_t, module, &r.module)
        require(*module == LEDGER_NONE || *module < r.modules.len, "a module that is not there");
    sites_reading_release(&r);
    alloc_texts_release(&texts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ledger_copy copy;
    struct error e = {""};
    int fd = memfd_create("ledger", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size, "no file to read");
    if (!ledger_copy_read(fd, &copy, &e)) {
        struct profile *p = ledger_profile(&copy);
        require(profile_valid(p), "not valid");
        read_tags(&copy);
        read_sites(&copy);
        profile_free(p);
        ledger_copy_release(&copy);
    } else {
        require(*e.text, "an error without a line");
    }
    close(fd);
    return 0;
}
