/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/ledger_finder.h"

#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/stray_search.h"

#define MS            1000000ull
#define SCAN_FIRST_NS (10 * MS) /* doubled up to SCAN_LAST_NS while no ledger is found */
#define SCAN_LAST_NS  (1000 * MS)
/* After an inotify event, the caller does not wait for the next one during this time: each new file would wake the
 * caller, and the process that creates the file pays for the wakeup. */
#define REST_NS (2 * MS)

/* Times are CLOCK_MONOTONIC. */
struct ledger_finder {
    const char *dir;
    int inotify_fd; /* -1: the kernel refused it; then only the searches from time to time find ledgers */
    struct stray_search *strays;
    uint64_t next_own, own_ns; /* search of the recorder's directory, while a ledger in it is incomplete */
    uint64_t next_all, all_ns; /* search of all directories */
    bool searched_all;         /* the last search was of all directories */
    bool appeared;             /* and was made because of an event */
    uint64_t rests_until;
    bool rests;      /* at the last search */
    size_t followed; /* ledgers found since the last search of all directories */
};

struct ledger_finder *ledger_finder_new(const char *dir)
{
    struct ledger_finder *f = mem_alloc(sizeof(*f));
    *f = (struct ledger_finder){.dir = dir,
                                .inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK),
                                .strays = stray_search_new(dir),
                                .next_own = UINT64_MAX,
                                .own_ns = SCAN_FIRST_NS,
                                .all_ns = SCAN_FIRST_NS};
    if (f->inotify_fd >= 0 && inotify_add_watch(f->inotify_fd, dir, IN_CREATE) < 0) {
        close(f->inotify_fd);
        f->inotify_fd = -1;
    }
    return f;
}

void ledger_finder_free(struct ledger_finder *f)
{
    stray_search_free(f->strays);
    if (f->inotify_fd >= 0)
        close(f->inotify_fd);
    free(f);
}

int ledger_finder_fd(const struct ledger_finder *f)
{
    return f->rests ? -1 : f->inotify_fd;
}

static bool read_events(const struct ledger_finder *f)
{
    char events[4096];
    bool any = false;
    while (f->inotify_fd >= 0 && read(f->inotify_fd, events, sizeof(events)) > 0)
        any = true;
    return any;
}

static uint64_t longer(uint64_t interval_ns)
{
    return interval_ns * 2 < SCAN_LAST_NS ? interval_ns * 2 : SCAN_LAST_NS;
}

/* Strays come last: else a stray whose file can be seen would be found again by its name after it was stored. */
bool ledger_finder_search(struct ledger_finder *f, uint64_t now, bool last, ledger_known_fn known,
                          const void *arg, struct ledger_strays *found)
{
    struct ledger_strays strays = {.list = {0}};
    bool all = last || now >= f->next_all, appeared = read_events(f);
    if (appeared)
        f->rests_until = now + REST_NS;
    f->rests = now < f->rests_until;
    if (last)
        stray_search_finish(f->strays, &strays);
    else if (stray_search_step(f->strays, now, &strays))
        all = true;
    if (!all && !appeared && now < f->next_own)
        return false;
    *found = (struct ledger_strays){.marks = strays.marks};
    ledger_run_scan(f->dir, all, known, arg, &found->list);
    vec_each (const struct ledger_entry, e, &strays.list)
        *vec_push(&found->list) = *e;
    vec_release(&strays.list);
    f->searched_all = all;
    f->appeared = appeared;
    return true;
}

/*
 * If an event led to no new ledger, the own directory is searched once more: the event may come before the process has
 * opened the file, and then the file looks like one that an ended process has left.
 */
void ledger_finder_report(struct ledger_finder *f, uint64_t now, size_t followed, bool incomplete)
{
    f->followed += followed;
    f->own_ns = f->appeared || !incomplete ? SCAN_FIRST_NS : longer(f->own_ns);
    f->next_own = incomplete || (f->appeared && !followed) ? now + f->own_ns : UINT64_MAX;
    if (!f->searched_all) {
        if (followed && f->next_all > now + SCAN_FIRST_NS)
            f->next_all = now + SCAN_FIRST_NS; /* programs start: other users' may, too */
        return;
    }
    f->all_ns = f->followed ? SCAN_FIRST_NS : longer(f->all_ns);
    f->next_all = now + f->all_ns;
    f->followed = 0;
}

uint64_t ledger_finder_due(struct ledger_finder *f, uint64_t now)
{
    uint64_t search = stray_search_due(f->strays, now),
             scan = f->next_own < f->next_all ? f->next_own : f->next_all,
             due = search < scan ? search : scan;
    return f->rests && f->rests_until < due ? f->rests_until : due;
}
