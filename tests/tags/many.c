/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More tags than anybody writes: a table of descriptors as ALLIUM_TAG() leaves them, one for each "line" of many.c.
 *
 *     many TAGS THREADS failed|account [wait]     each thread at each of so many: has a failure, and they come there at
 *                                                 once; or accounts a byte for each line
 *
 * Prints its resident bytes before and after. wait: it ends when its standard input does.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allium/tag.h"

#define MOST     200000
#define TEXT(x)  TEXT_(x)
#define TEXT_(x) #x

__asm__("\t.pushsection allium_texts,\"a\",@progbits\n"
        "many_text:\t.asciz \"many\", \"tag\", \"many.c\"\n"
        "\t.popsection\n"
        "\t.pushsection allium_tags,\"aw\",@progbits\n"
        "\t.balign 8\n"
        "many:\n"
        "\t.set many_line, 1\n"
        "\t.rept " TEXT(
            MOST) "\n"
                  "\t.long " TEXT(
                      ALLIUM_TAG_VERSION) ", -1, 1, 0\n"
                                          "\t.long main-., many_text-., allium_control_page-., many_line\n"
                                          "\t.set many_line, many_line + 1\n"
                                          "\t.endr\n"
                                          "\t.popsection\n");
extern struct allium_tag many[MOST] __attribute__((visibility("hidden")));

static unsigned tags, threads;
static const char *what = "";
static pthread_barrier_t together;

static void *work(void *arg)
{
    for (unsigned i = 0; i < tags; i++) {
        if (!strcmp(what, "failed")) {
            if (i % 16 == 0)
                pthread_barrier_wait(&together);
            allium_failed(&many[i]);
        } else {
            allium_account(&many[i], i);
        }
    }
    pthread_barrier_wait(&together);
    return arg;
}

/* Counted by pages: what statm has is each processor's count put together, of which some is still to come. */
static unsigned long resident(void)
{
    unsigned long kib = 0;
    char line[256];
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    while (f && fgets(line, sizeof(line), f) && sscanf(line, "Rss: %lu kB", &kib) != 1)
        ;
    if (!f || !kib)
        abort();
    fclose(f);
    return kib << 10;
}

int main(int argc, char **argv)
{
    pthread_t t[1000];
    tags = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    threads = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    what = argc > 3 ? argv[3] : "";
    unsigned long before = resident();
    pthread_barrier_init(&together, NULL, threads);
    for (unsigned i = 1; i < threads; i++)
        if (pthread_create(&t[i], NULL, work, NULL))
            abort();
    work(NULL);
    for (unsigned i = 1; i < threads; i++)
        pthread_join(t[i], NULL);
    printf("%lu %lu\n", before, resident());
    fflush(stdout);
    if (argc > 4)
        while (getchar() != EOF)
            ;
    return 0;
}
