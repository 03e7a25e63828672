/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/tag_tracker.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"
#include "base/vec.h"
#include "collect/accounts/tag_accounts.h"
#include "collect/ledger/ledger_copy.h"
#include "collect/ledger/ledger_scan.h"
#include "collect/ledger/ledger_seal.h"
#include "collect/process/container.h"
#include "collect/process/proc.h"
#include "store/account_tables.h"

#define MS            1000000ull
#define TAGS_FIRST_NS (100 * MS)
#define TAGS_TOGETHER 64u
#define ALIVE_NS      (100 * MS) /* interval of checking whether the process still runs */
/* the interval between snapshots is at least 25 times the duration of the last one */
#define COST_SHARE 25

/* A ledger that is being followed. Times are CLOCK_MONOTONIC. */
struct track {
    struct ledger_entry entry;
    int fd;
    const char *root; /* prefix of the paths of its files; "": our own root */
    uint64_t map_start, map_bytes;
    uint64_t next_read, next_moment, moment_ns;
    uint32_t moments;
    bool sealed; /* ledger_seal_opened() */
    bool stored; /* it has ended; the ledger is removed when its data is committed */
};

struct tag_tracker {
    struct symbols *symbols;
    struct accounts_keeper *keeper;
    struct alloc_texts texts;
    struct container_roots roots;
    struct VEC(struct track) tracks;
};

struct tag_tracker *tag_tracker_new(struct recording *recording, struct symbols *symbols)
{
    struct tag_tracker *f = mem_alloc(sizeof(*f));
    *f = (struct tag_tracker){.symbols = symbols, .keeper = accounts_keeper_new(recording, "tags")};
    return f;
}

static void release(struct track *t)
{
    close(t->fd);
    free(t->entry.path);
    free(t->entry.mapped);
}

void tag_tracker_free(struct tag_tracker *f)
{
    vec_each (struct track, t, &f->tracks)
        release(t);
    vec_release(&f->tracks);
    accounts_keeper_free(f->keeper);
    alloc_texts_release(&f->texts);
    container_roots_release(&f->roots);
    free(f);
}

bool tag_tracker_knows(const struct tag_tracker *f, uint64_t image_id)
{
    vec_each (const struct track, t, &f->tracks)
        if (t->entry.image_id == image_id)
            return true;
    return false;
}

/* If the ledger is incomplete yet, a later scan finds it. */
void tag_tracker_take(struct tag_tracker *f, struct ledger_entry *e)
{
    struct ledger_header h;
    struct track t = {.entry = *e, .root = "", .moment_ns = TAGS_FIRST_NS};
    t.fd = tag_tracker_knows(f, e->image_id) ? -1 : ledger_entry_open(e);
    if (t.fd < 0)
        return;
    if (ledger_copy_header(t.fd, &h, NULL)) {
        close(t.fd);
        return;
    }
    t.map_start = h.map_start;
    t.map_bytes = h.map_bytes;
    pid_t pid = e->mapped ? e->pid : ledger_scan_holder(e); /* in our pid namespace */
    t.entry.pid = pid ? pid : e->pid;
    e->path = NULL; /* the track owns it now */
    e->mapped = NULL;
    *vec_push(&f->tracks) = t;
}

static bool is_alive(const struct track *t)
{
    int held = t->entry.mapped ? -1 : ledger_is_held(t->fd);
    return held < 0 ? proc_maps(t->entry.pid, t->map_start, t->map_bytes) && proc_runs(t->entry.pid) : held;
}

/* A ledger that another program has damaged is not recorded. */
static int store_track(struct tag_tracker *f, struct track *t, bool alive, struct error *e)
{
    struct accounts a = {.rows = {0}};
    uint64_t began = clock_ns(CLOCK_MONOTONIC);
    if (alive)
        t->root = container_root(&f->roots, t->entry.pid);
    int bad = tags_read_file(&a, &f->texts, t->fd, t->entry.pid, alive, f->symbols, t->root, NULL);
    bad = bad ? 0 : accounts_keeper_put(f->keeper, &a, &f->texts, e);
    accounts_release(&a);
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    /* the first snapshot is not counted: it reads debug information */
    uint64_t least = t->moments ? (now - began) * COST_SHARE : 0;
    if (++t->moments % TAGS_TOGETHER == 0)
        t->moment_ns *= 2;
    t->next_moment = now + (least > t->moment_ns ? least : t->moment_ns);
    return bad;
}

int tag_tracker_keep(struct tag_tracker *f, int fd, pid_t pid, bool alive, const char *root, struct error *e)
{
    struct accounts a = {.rows = {0}};
    struct ledger_header h;
    if (ledger_copy_header(fd, &h, NULL) || !ledger_copy_has_tags(&h))
        return 0;
    int bad = tags_read_file(&a, &f->texts, fd, pid, alive, f->symbols, root, NULL);
    bad = bad ? 0 : accounts_keeper_put(f->keeper, &a, &f->texts, e);
    accounts_release(&a);
    return bad;
}

int tag_tracker_step(struct tag_tracker *f, uint64_t now, bool last, struct error *e)
{
    int bad = 0;
    for (size_t i = 0; i < f->tracks.len && !bad; i++) {
        struct track *t = &f->tracks.at[i];
        if (t->stored || (!last && now < t->next_read))
            continue;
        bool alive = is_alive(t);
        t->sealed = t->sealed || (alive && ledger_seal_opened(&t->entry, t->fd));
        if (!alive || last || now >= t->next_moment)
            bad = store_track(f, t, alive, e);
        t->stored = !alive;
        t->next_read = now + ALIVE_NS;
    }
    return bad;
}

uint64_t tag_tracker_due(const struct tag_tracker *f)
{
    uint64_t due = UINT64_MAX;
    vec_each (const struct track, t, &f->tracks)
        if (!t->stored && t->next_read < due)
            due = t->next_read;
    return due;
}

void tag_tracker_committed(struct tag_tracker *f)
{
    size_t kept = 0;
    vec_each (struct track, t, &f->tracks) {
        if (!t->stored) {
            f->tracks.at[kept++] = *t;
            continue;
        }
        if (t->entry.path)
            ledger_remove(t->entry.path);
        release(t);
    }
    f->tracks.len = kept;
}
