/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/ledger/ledger_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"

#define TABLE_BYTES_MAX  (8ull << 30)
#define SPARSE_BYTES_MAX (256ull << 20)
#define READINGS_MAX     5
#define CHUNK_RECORDS    4096u

static int read_all(int fd, void *out, size_t bytes, uint64_t offset)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pread(fd, (char *)out + done, bytes - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ENODATA;
        done += (size_t)n;
    }
    return 0;
}

int ledger_copy_header(int fd, struct ledger_header *h, struct error *e)
{
    int bad = read_all(fd, h, sizeof(*h), 0);
    if (!bad && !h->magic) /* the magic is written last */
        return error_set(e, EPROTO,
                         "it is incomplete: it is being created now, or its process ended meanwhile");
    if (bad == -ENODATA || (!bad && h->magic != LEDGER_MAGIC))
        return error_set(e, EPROTO, "not a ledger");
    if (bad)
        return error_set(e, -bad, "cannot read the ledger: %s", strerror(-bad));
    if (h->version != LEDGER_VERSION || h->header_bytes != LEDGER_HEADER_BYTES)
        return error_set(e, EPROTO,
                         "the ledger is of version %u, this allium reads version %u: use the allium that "
                         "started the program, or restart the program",
                         h->version, LEDGER_VERSION);
    for (int t = 0; t < LEDGER_TABLES; t++)
        if (h->regions[t].record_bytes != ledger_record_bytes((enum ledger_table)t))
            return error_set(e, EPROTO,
                             "the ledger is of another build of allium, or damaged (its records have another "
                             "size): use the allium that started the program, or restart the program");
    return 0;
}

/* Sets the number of records of a table to copy: as many as the header claims and the file can hold. Returns -EPROTO if
 * the table lies outside the file or is too large. */
static int clamp_count(const struct ledger_header *h, int t, uint64_t file_bytes, uint64_t *count)
{
    const struct ledger_region *r = &h->regions[t];
    if (r->offset < LEDGER_HEADER_BYTES || r->offset > file_bytes ||
        r->ready_bytes > file_bytes - r->offset || r->ready_bytes > TABLE_BYTES_MAX)
        return -EPROTO;
    uint64_t fits = r->ready_bytes / r->record_bytes;
    uint64_t used = t == LEDGER_FREES ? fits : r->used;
    *count = used < fits ? used : fits;
    return 0;
}

_Static_assert(LEDGER_SITES > LEDGER_SITE_SUMS && LEDGER_SITES > LEDGER_FRAMES &&
                   LEDGER_TAGS > LEDGER_ACCOUNTS && LEDGER_ACCOUNTS > LEDGER_MODULES &&
                   LEDGER_FREES > LEDGER_SAMPLES && LEDGER_SAMPLES > LEDGER_CELLS &&
                   LEDGER_CELLS > LEDGER_STACKS && LEDGER_CELLS > LEDGER_THREADS &&
                   LEDGER_CELLS > LEDGER_PERIODS && LEDGER_STACKS > LEDGER_STACK_FRAMES &&
                   LEDGER_STACK_FRAMES > LEDGER_FRAMES && LEDGER_FRAMES > LEDGER_MODULES &&
                   LEDGER_MODULES > LEDGER_STRINGS,
               "a table refers to those before it: they are copied from the last to the first");

/*
 * Returns whether the copy would take much more memory than the file has: a sparse file costs its maker nothing, but
 * would cost us the bytes that it claims to hold. In the file of an agent, all ready bytes are allocated; a copy of it
 * on a disk may be sparse.
 */
static bool is_too_much(const struct ledger_copy *c, const struct stat *st)
{
    uint64_t all = 0;
    for (int t = 0; t < LEDGER_TABLES; t++)
        all += c->count[t] * ledger_record_bytes((enum ledger_table)t);
    return all > (uint64_t)st->st_blocks * 512 + SPARSE_BYTES_MAX;
}

static int copy_table(int fd, const struct stat *st, struct ledger_copy *c, int t)
{
    struct ledger_region *r = &c->header.regions[t];
    int bad = 0;
    if (r->limit_bytes) /* else the ledger does not have this table */
        bad = read_all(fd, r, sizeof(*r), offsetof(struct ledger_header, regions[t]));
    if (!bad)
        bad = clamp_count(&c->header, t, (uint64_t)st->st_size, &c->count[t]);
    if (!bad && is_too_much(c, st))
        bad = -EPROTO;
    if (bad) {
        c->count[t] = 0;
        return bad;
    }
    size_t bytes = c->count[t] * ledger_record_bytes((enum ledger_table)t);
    c->table[t] = malloc(bytes + 1);
    if (!c->table[t])
        return -ENOMEM;
    ((char *)c->table[t])[bytes] = '\0'; /* ends the last string */
    return bytes ? read_all(fd, c->table[t], bytes, r->offset) : 0;
}

static bool is_whole(const struct ledger_sample *s)
{
    return !s->address || s->check == ledger_check(s->serial);
}

/*
 * Reads samples again. A sample is whole if its check matches its serial, and two readings in a row find the same
 * serial (see ledger.h). A sample that changed is taken from the later reading, and compared with the next one. After
 * the last reading, samples with a check that does not match are left out.
 */
static void reread_chunk(int fd, struct ledger_copy *c, uint64_t first, uint64_t n)
{
    struct ledger_sample *mine = (struct ledger_sample *)c->table[LEDGER_SAMPLES] + first;
    uint64_t offset = c->header.regions[LEDGER_SAMPLES].offset + first * sizeof(*mine);
    struct ledger_sample *again = malloc(n * sizeof(*again));
    uint64_t open = n;
    for (int reading = 0; again && open && reading < READINGS_MAX; reading++) {
        if (read_all(fd, again, n * sizeof(*again), offset))
            break;
        open = 0;
        for (uint64_t i = 0; i < n; i++) {
            bool same =
                mine[i].address == again[i].address &&
                (!mine[i].address || (mine[i].serial == again[i].serial && mine[i].check == again[i].check));
            if (same && is_whole(&mine[i]))
                continue;
            mine[i] = again[i];
            open++;
        }
    }
    free(again);
    for (uint64_t i = 0; open && i < n; i++)
        if (!is_whole(&mine[i])) {
            mine[i].address = 0;
            c->torn_samples++;
        }
}

/* Reads a count again if its words were read before and after the process carried calls over from one to the other. */
static void reread_counts(int fd, struct ledger_copy *c)
{
    struct ledger_count *counts = c->table[LEDGER_ACCOUNTS];
    uint64_t n = c->count[LEDGER_ACCOUNTS] * (sizeof(struct ledger_accounts) / sizeof(*counts));
    for (uint64_t i = 0; i < n; i++)
        for (int reading = 0; ledger_count_is_torn(counts[i]) && reading < READINGS_MAX; reading++)
            if (read_all(fd, &counts[i], sizeof(*counts),
                         c->header.regions[LEDGER_ACCOUNTS].offset + i * sizeof(*counts)))
                return;
}

static double clock_rate(const struct ledger_header *h, uint64_t ticks)
{
    uint64_t ns = clock_ns(CLOCK_MONOTONIC);
    if (h->clock != LEDGER_CLOCK_TSC || ns <= h->began_monotonic_ns || ticks <= h->began_ticks)
        return 1.0;
    return (double)(ticks - h->began_ticks) / (double)(ns - h->began_monotonic_ns);
}

static uint64_t ticks_now(const struct ledger_header *h)
{
#if defined(__x86_64__)
    if (h->clock == LEDGER_CLOCK_TSC)
        return __builtin_ia32_rdtsc();
#endif
    return clock_ns(CLOCK_MONOTONIC);
}

int ledger_copy_read(int fd, struct ledger_copy *c, struct error *e)
{
    struct stat st;
    memset(c, 0, sizeof(*c));
    int bad = ledger_copy_header(fd, &c->header, e);
    if (bad)
        return bad;
    if (fstat(fd, &st))
        bad = -errno;
    c->taken_ticks = ticks_now(&c->header);
    c->ticks_per_ns = clock_rate(&c->header, c->taken_ticks);
    c->taken_realtime_ns = clock_ns(CLOCK_REALTIME);
    /* A record is written after the records that it refers to. These are in earlier tables, which are copied later, so
     * the copy has them. */
    for (int t = LEDGER_TABLES - 1; t >= 0 && !bad; t--)
        bad = copy_table(fd, &st, c, t);
    if (bad) {
        ledger_copy_release(c);
        return error_set(
            e, -bad,
            bad == -EPROTO
                ? "the ledger is damaged: its tables lie outside the file, or have no memory behind them"
                : "cannot read the ledger: %s",
            strerror(-bad));
    }
    for (uint64_t i = 0; i < c->count[LEDGER_SAMPLES]; i += CHUNK_RECORDS) {
        uint64_t n = c->count[LEDGER_SAMPLES] - i;
        reread_chunk(fd, c, i, n < CHUNK_RECORDS ? n : CHUNK_RECORDS);
    }
    reread_counts(fd, c);
    /* An operation that began before the end of the copying, and was not done at its beginning, may be in one sum and
     * not in another. So `begun` is read at the end, and `done` at the beginning. */
    struct ledger_header end;
    if (!read_all(fd, &end, sizeof(end), 0))
        for (int i = 0; i < LEDGER_SHARDS; i++)
            c->header.shards[i].begun = end.shards[i].begun;
    return 0;
}

void ledger_copy_release(struct ledger_copy *c)
{
    for (int t = 0; t < LEDGER_TABLES; t++) {
        free(c->table[t]);
        c->table[t] = NULL;
        c->count[t] = 0;
    }
}

uint64_t ledger_copy_realtime(const struct ledger_copy *c, uint64_t ticks)
{
    if (!ticks || !c->header.began_realtime_ns)
        return 0;
    double since = ((double)ticks - (double)c->header.began_ticks) / c->ticks_per_ns;
    double at = (double)c->header.began_realtime_ns + since;
    return at < 0 ? 0 : at > 0x1p63 ? (uint64_t)1 << 63 : (uint64_t)at;
}
