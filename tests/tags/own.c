/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cache of a program's own that uses <allium/tag.h>. Line by line: `put N` puts N entries of 100 bytes, as far as it
 * is not told to fail; `take N` takes them out. It answers with how many it was.
 */
#include <allium/tag.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static unsigned entries;
static volatile unsigned sink;

static __attribute__((noinline)) unsigned put(struct allium_tag *tag)
{
    if (allium_should_fail(tag))
        return 0;
    uint64_t started = allium_latency_start(tag);
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    allium_latency_stop(tag, started);
    ALLIUM_PROBE(cache_put, 100, &entries);
    allium_account(tag, 100);
    return 1;
}

int main(void)
{
    char line[100], what[10];
    unsigned n;
    struct allium_tag *tag = ALLIUM_TAG_FIELDS("cache", "entry", "tenant=blue tier=2");
    setvbuf(stdin, NULL, _IONBF, 0);
    while (fgets(line, sizeof(line), stdin) && sscanf(line, "%9s %u", what, &n) == 2) {
        unsigned done = 0;
        for (; n--; sink++)
            if (what[0] == 'p')
                done += put(tag);
            else if (entries + done)
                allium_unaccount(tag, 100), done++;
        entries += what[0] == 'p' ? done : -done;
        printf("%u\n", done);
        fflush(stdout);
    }
    return 0;
}
