/* SPDX-License-Identifier: BSD-2-Clause */
/* Sinks that print lines into files, which are in memory: a disk would be another benchmark. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/hooks/bench_events.h"

#define LINE_BYTES 34u /* two addresses of 16 digits; a payload has a space before it */

static FILE *shared;
static __thread FILE *own;
static uint64_t bytes; /* of all threads */

static FILE *open_file(void)
{
    const int fd = memfd_create("allium-bench", MFD_CLOEXEC);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f)
        _exit(1);
    return f;
}

const char *bench_shared_file_begin(unsigned threads)
{
    (void)threads;
    shared = open_file();
    return NULL;
}

static void print(FILE *f, void *function, void *caller)
{
    if (bench_payload_bytes)
        fprintf(f, "%016" PRIxPTR " %016" PRIxPTR " %.*s\n", (uintptr_t)function, (uintptr_t)caller,
                (int)bench_payload_bytes, bench_payload);
    else
        fprintf(f, "%016" PRIxPTR " %016" PRIxPTR "\n", (uintptr_t)function, (uintptr_t)caller);
}

void bench_file_hit(void *function, void *caller)
{
    if (unlikely(!own))
        own = open_file();
    print(own, function, caller);
}

void bench_shared_file_hit(void *function, void *caller)
{
    print(shared, function, caller);
}

/* Counts what is in the file, and empties it. */
static void take(FILE *f)
{
    flockfile(f);
    fflush(f);
    const off_t at = ftello(f);
    rewind(f);
    const int bad = ftruncate(fileno(f), 0);
    if (at > 0 && !bad)
        atomic_add64_known(false, &bytes, (uint64_t)at);
    funlockfile(f);
}

void bench_file_leave(void)
{
    if (own)
        take(own);
}

void bench_shared_file_leave(void)
{
    take(shared);
}

uint64_t bench_file_bytes(void)
{
    return load_relaxed(&bytes);
}

uint64_t bench_file_hits(void)
{
    return bench_file_bytes() / (LINE_BYTES + (bench_payload_bytes ? 1 + bench_payload_bytes : 0));
}
