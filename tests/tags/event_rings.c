/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event_rings follow LEDGERS FOLDER: reads the rings in the folder LEDGERS, as `allium trace` does, until the end of
 * its input; prints what there was.
 * event_rings set LEDGER LIST: switches events of the process of this ledger.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collect/ledger/control_events.h"
#include "run/trace/ring_follow.h"

static int failed(const struct error *e)
{
    fprintf(stderr, "%s\n", e->text);
    return 1;
}

static int follow(const char *ledgers, const char *folder)
{
    struct ring_follow *f = NULL;
    struct ring_follow_counts n;
    struct error e = {""};
    if (ring_follow_begin(&f, &(struct ring_follow_options){.dir = ledgers, .folder = folder}, &e))
        return failed(&e);
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    if (ring_follow_end(f, &n, &e))
        return failed(&e);
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", n.events,
           n.full + n.no_room + n.no_ring, n.images, n.user.cut, n.user.unknown);
    return 0;
}

static int set(char *ledger, const char *list)
{
    const struct ledger_entry entry = {.path = ledger};
    struct error e = {""};
    return control_set_events(&entry, list, &e) ? failed(&e) : 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "follow"))
        return follow(argv[2], argv[3]);
    return argc == 4 && !strcmp(argv[1], "set") ? set(argv[2], argv[3]) : 2;
}
