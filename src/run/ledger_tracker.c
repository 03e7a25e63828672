/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/ledger_tracker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"
#include "base/vec.h"
#include "collect/ledger/ledger_copy.h"
#include "collect/ledger/ledger_dir.h"
#include "collect/ledger/ledger_profile.h"
#include "collect/ledger/ledger_scan.h"
#include "collect/ledger/ledger_seal.h"
#include "collect/ledger/profile_names.h"
#include "collect/process/container.h"
#include "collect/process/proc.h"
#include "collect/process/thread_names.h"
#include "run/image_alive.h"
#include "run/ledger_finder.h"
#include "run/record.h"
#include "run/read_pace.h"
#include "run/site_tracker.h"
#include "run/tag_tracker.h"
#include "run/unobserved_count.h"

#define MS              1000000ull
#define COMMIT_FIRST_NS (250 * MS) /* doubled up to COMMIT_LAST_NS */
#define COMMIT_LAST_NS  (5000 * MS)
#define STORED_NS       (500 * MS) /* then data of ended images is committed, and their ledgers removed */
#define STORED_MAX      64         /* or when this many images are stored and not committed */
#define HARVEST_NS      (100 * MS) /* limit on storing ended images between two scans */
#define WAIT_NS         (50 * MS)
#define WAITING_MAX     32 /* ended images that wait for debug files before they are stored */
#define BACKLOG_MAX     400 /* further ended images are only counted: they end faster than they can be stored */
#define IMAGES_MAX      1000 /* images stored in full; further ones are only counted, with their peaks */
#define ARGS_BYTES_MAX  1000
#define REREAD_NS       (2000 * MS) /* at a moment, an unchanged ledger is read if the last reading is so old */
#define STATUS_FDS      200 /* status files stay open below this descriptor; the others are for ledgers */

_Static_assert(RECORD_PERIOD_DEFAULT_BYTES == LEDGER_PERIOD_DEFAULT &&
                   RECORD_PERIOD_MAX_BYTES == LEDGER_PERIOD_MAX,
               "the periods of the tool are those of the agent");

/* A ledger that is being followed. */
struct track {
    struct ledger_entry entry;
    int fd;
    int status_fd;    /* of the process's status; -1: not open */
    const char *root; /* prefix of the paths of its files; "": our own root */
    char *args;
    struct thread_names threads;
    uint64_t rss_anon_bytes, rss_anon_before_bytes; /* at the last reading and the one before it; 0: none */
    struct image_pace pace;
    uint64_t operations; /* ledger_operations() at the last reading of the whole ledger */
    uint64_t read_ns;    /* time of that reading (CLOCK_MONOTONIC) */
    uint64_t map_start, map_bytes;
    bool known;       /* entry.pid is its number in our pid namespace */
    bool put, sealed; /* ledger_seal() */
    bool waits;       /* it has ended, and is stored when the servers have sent its debug files, or failed */
    bool stored;      /* it has ended; the ledger is removed after the commit, so a full disk loses nothing */
};

struct ledger_tracker {
    struct ledger_tracker_options o;
    struct VEC(struct track) tracks;
    struct ledger_finder *finder;
    uint64_t next_commit, commit_ns;
    struct container_roots roots;
    struct read_pace pace;
    uint64_t naming_ns; /* processor time of naming the latest image; mostly part of its first moment */
    uint64_t images;
    size_t stored, waiting; /* number of tracks in that state */
    bool last;              /* the last step: no image waits any more */
    uint64_t command_image, command_began_ns;
    struct unobserved_count *unseen;
    struct tag_tracker *tags;
    struct site_tracker *sites; /* NULL: --sites was not given */
};

struct ledger_tracker *ledger_tracker_new(const struct ledger_tracker_options *o)
{
    struct ledger_tracker *f = mem_alloc(sizeof(*f));
    f->o = *o;
    f->commit_ns = COMMIT_FIRST_NS;
    f->pace.began_ns = clock_ns(CLOCK_MONOTONIC);
    f->unseen = unobserved_count_new();
    if (o->own_allocator)
        unobserved_count_add(f->unseen, PRELOAD_CHECK_OWN_MALLOC, o->own_allocator);
    f->tags = tag_tracker_new(o->recording, o->symbols);
    f->finder = ledger_finder_new(o->dir);
    f->sites = site_tracker_new(o->recording, o->symbols, o->sites);
    return f;
}

static void release(struct track *t)
{
    if (t->fd >= 0)
        close(t->fd);
    if (t->status_fd >= 0)
        close(t->status_fd);
    free(t->args);
    thread_names_release(&t->threads);
    free(t->entry.path);
    free(t->entry.mapped);
}

void ledger_tracker_free(struct ledger_tracker *f)
{
    if (!f)
        return;
    vec_each (struct track, t, &f->tracks)
        release(t);
    vec_release(&f->tracks);
    ledger_finder_free(f->finder);
    unobserved_count_free(f->unseen);
    tag_tracker_free(f->tags);
    site_tracker_free(f->sites);
    container_roots_release(&f->roots);
    free(f);
}

int ledger_tracker_fd(const struct ledger_tracker *f)
{
    return ledger_finder_fd(f->finder);
}

static bool is_known(const void *tracker, const struct ledger_entry *e)
{
    const struct ledger_tracker *f = tracker;
    if (e->tags)
        return tag_tracker_knows(f->tags, e->image_id);
    vec_each (const struct track, t, &f->tracks)
        if (t->entry.image_id == e->image_id)
            return true;
    return false;
}

/* The file name has the pid of the process in its own pid namespace. Finds its pid in ours. */
static void find_pid(struct track *t)
{
    pid_t pid = t->entry.mapped ? t->entry.pid : ledger_scan_holder(&t->entry);
    t->known = pid != 0;
    t->entry.pid = pid ? pid : t->entry.pid;
}

/* Follows a ledger that has appeared. If it is incomplete yet, a later scan finds it. */
static void take_up(struct ledger_tracker *f, struct ledger_entry *e, uint64_t now)
{
    struct ledger_header h;
    struct track t = {.entry = *e, .pace = image_pace_begin(now), .status_fd = -1, .root = ""};
    t.fd = ledger_entry_open(e);
    if (t.fd < 0)
        return;
    if (ledger_copy_header(t.fd, &h, NULL)) {
        close(t.fd);
        return;
    }
    t.map_start = h.map_start;
    t.map_bytes = h.map_bytes;
    find_pid(&t);
    if (f->o.keep_args) {
        struct buf args = BUF_INIT;
        proc_command_line(t.entry.pid, ARGS_BYTES_MAX, &args);
        t.args = buf_detach(&args);
    }
    e->path = NULL; /* the track owns it now */
    e->mapped = NULL;
    *vec_push(&f->tracks) = t;
}

/*
 * Returns how many ledgers are followed that were not before. *incomplete: a process is still making one. `last`: also
 * removes incomplete ledgers, of processes that were killed while they made one.
 */
static size_t take_up_all(struct ledger_tracker *f, struct ledger_list *list, uint64_t now, bool last,
                          bool *incomplete)
{
    size_t followed = 0;
    vec_each (struct ledger_entry, e, list) {
        if (is_known(f, e))
            continue;
        if (e->tags)
            tag_tracker_take(f->tags, e);
        else
            take_up(f, e, now);
        if (is_known(f, e))
            followed++;
        else if (e->path && e->alive)
            *incomplete = true;
        else if (last && !e->tags && e->path && e->sure)
            ledger_remove(e->path);
    }
    return followed;
}

static void scan(struct ledger_tracker *f, uint64_t now, bool last)
{
    struct ledger_strays found;
    bool incomplete = false;
    if (!ledger_finder_search(f->finder, now, last, is_known, f, &found))
        return;
    size_t followed = take_up_all(f, &found.list, now, last, &incomplete);
    vec_each (const struct ledger_mark, mark, &found.marks)
        if (!is_known(f, &(struct ledger_entry){.image_id = mark->id})) /* by a visible ledger */
            unobserved_count_add_mark(f->unseen, mark);
    ledger_strays_release(&found);
    ledger_finder_report(f->finder, now, followed, incomplete);
}

static struct image_alive image_of(const struct track *t)
{
    return (struct image_alive){&t->entry, t->fd, t->map_start, t->map_bytes, t->known};
}

/* Reads the whole ledger, with names. Returns NULL if it cannot be read. */
static struct profile *read_image(struct ledger_tracker *f, struct track *t, bool alive)
{
    struct ledger_copy copy;
    if (ledger_copy_read(t->fd, &copy, NULL))
        return NULL;
    struct profile *p = ledger_profile(&copy);
    ledger_copy_release(&copy);
    struct profile_image *i = &p->images.at[0];
    if (alive)
        thread_names_read(&t->threads, p, t->entry.pid);
    else
        thread_names_recall(&t->threads, p);
    if (alive)
        i->state = PROFILE_IMAGE_RUNNING;
    else if (i->ended_ns) /* without an exit time, this reading is the closest to the end */
        profile_end(p);
    i->rss_anon_bytes = t->rss_anon_bytes;
    if (!alive && t->rss_anon_before_bytes >
                      t->rss_anon_bytes) /* at the last reading it may have been freeing all its memory */
        i->rss_anon_bytes = t->rss_anon_before_bytes;
    uint32_t args = profile_string(p, t->args);
    p->images.at[0].args = args;
    p->images.at[0].pid = t->entry.pid;
    const char *root = alive ? container_root(&f->roots, t->entry.pid) : "";
    t->root = *root ? root : t->root;
    uint64_t began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    profile_names_apply(f->o.symbols, p, t->root);
    f->naming_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
    return p;
}

static int keep_accounts(struct ledger_tracker *f, const struct track *t, bool alive, struct error *e)
{
    int bad = site_tracker_keep(f->sites, t->fd, t->entry.pid, alive, t->root, e);
    return bad ? bad : tag_tracker_keep(f->tags, t->fd, t->entry.pid, alive, t->root, e);
}

/* Stores the profile, and frees it. */
static int put_profile(struct ledger_tracker *f, struct track *t, struct profile *p, bool last,
                       struct error *e)
{
    if (!p)
        return 0; /* another program has overwritten the ledger: there is nothing to store */
    if (!t->put)
        f->images++;
    t->put = true;
    int bad = recording_put_image(f->o.recording, p, last, e);
    profile_free(p);
    return bad ? bad : keep_accounts(f, t, !t->stored, e);
}

/* Returns whether to store the image later, when debug files have come. Nothing is lost: the ledger stays. */
static bool may_wait(struct ledger_tracker *f, struct track *t, uint64_t now)
{
    bool wait = !f->last && (t->waits || f->waiting < WAITING_MAX) && symbols_pending(f->o.symbols);
    f->waiting += (size_t)wait - (size_t)t->waits;
    t->waits = wait;
    t->pace.next_point_ns = now + WAIT_NS;
    return wait;
}

static void set_stored(struct ledger_tracker *f, struct track *t, uint64_t now)
{
    t->stored = true;
    f->stored++;
    if (f->stored >= STORED_MAX)
        f->next_commit = now;
    else if (f->next_commit > now + STORED_NS)
        f->next_commit = now + STORED_NS;
}

static bool is_crowded(const struct ledger_tracker *f)
{
    return f->tracks.len - f->stored > BACKLOG_MAX;
}

/* An image of the command that has ended while the command runs was replaced by exec. */
static void note_command(struct ledger_tracker *f, const struct track *t, const struct profile *p)
{
    const struct profile_image *i = &p->images.at[0];
    if (t->entry.pid != f->o.pid || i->began_ns < f->command_began_ns)
        return;
    f->command_image = proc_runs(f->o.pid) ? 0 : i->id;
    f->command_began_ns = i->began_ns;
}

uint64_t ledger_tracker_command_image(const struct ledger_tracker *f)
{
    return f->command_image;
}

/* Stores an image that has ended; beyond IMAGES_MAX, only counts it. */
static int harvest(struct ledger_tracker *f, struct track *t, uint64_t now, struct error *e)
{
    struct ledger_header h;
    if (t->waits && may_wait(f, t, now))
        return 0;
    if (!t->put && (f->images >= IMAGES_MAX || is_crowded(f))) {
        set_stored(f, t, now);
        bool read = !ledger_copy_header(t->fd, &h, NULL);
        return recording_drop_image(f->o.recording, read ? (double)h.peak_bytes_q / (1u << LEDGER_Q) : 0, e);
    }
    struct profile *p = read_image(f, t, false);
    size_t named_with = symbols_came(f->o.symbols);
    if (p && may_wait(f, t, now)) {
        profile_free(p);
        return 0;
    }
    if (p && symbols_came(f->o.symbols) != named_with) { /* debug files came in the meantime */
        profile_free(p);
        p = read_image(f, t, false);
    }
    set_stored(f, t, now);
    if (p)
        note_command(f, t, p);
    return put_profile(f, t, p, true, e);
}

static int put_whole_moment(struct ledger_tracker *f, struct track *t, const struct profile_point *point,
                            bool *thinned, struct error *e)
{
    struct profile *p = read_image(f, t, true);
    if (!p)
        return 0;
    int bad = t->put ? 0 : recording_put_image(f->o.recording, p, false, e);
    if (!bad && !t->put)
        f->images++;
    t->put = true;
    if (!bad)
        bad = recording_put_point(f->o.recording, p->images.at[0].id, point, p, thinned, e);
    profile_free(p);
    return bad;
}

/* If no sample has come or gone since the last moment, the sums are the same: the ledger is not read. */
static int add_moment(struct ledger_tracker *f, struct track *t, const struct ledger_header *h,
                      const struct profile_point *point, bool *thinned, struct error *e)
{
    uint64_t began = clock_ns(CLOCK_THREAD_CPUTIME_ID), now = clock_ns(CLOCK_MONOTONIC);
    uint64_t operations = ledger_operations(h);
    int bad;
    f->naming_ns = 0;
    if (t->put && t->operations == operations && now - t->read_ns < REREAD_NS) {
        bad = recording_put_same_moment(f->o.recording, h->image_id, point, thinned, e);
    } else {
        bad = put_whole_moment(f, t, point, thinned, e);
        t->operations = operations;
        t->read_ns = now;
    }
    bad = bad ? bad : keep_accounts(f, t, true, e);
    uint64_t cost = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
    image_pace_moment(&t->pace, &f->pace, now, cost > f->naming_ns ? cost - f->naming_ns : 0);
    return bad;
}

static struct proc_status read_status(struct track *t)
{
    struct proc_status status;
    if (t->status_fd < 0)
        t->status_fd = proc_status_open(t->entry.pid);
    if (proc_status_read(t->status_fd, &status) && status.rss_anon_bytes) {
        t->rss_anon_before_bytes = t->rss_anon_bytes;
        t->rss_anon_bytes = status.rss_anon_bytes;
    }
    if (t->status_fd >= STATUS_FDS) {
        close(t->status_fd);
        t->status_fd = -1;
    }
    return status;
}

static int add_point(struct ledger_tracker *f, struct track *t, uint64_t now, struct error *e)
{
    struct ledger_header h;
    bool thinned = false;
    int bad;
    uint64_t began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (ledger_copy_header(t->fd, &h, NULL))
        return 0;
    struct proc_status status = read_status(t);
    t->sealed = t->sealed || ledger_seal(&t->entry, &h, &status);
    struct profile_point point = {.time_ns = clock_ns(CLOCK_REALTIME),
                                  .live_bytes = (double)ledger_live_bytes_q(&h) / (1u << LEDGER_Q),
                                  .allocated_bytes = (double)ledger_allocated_bytes_q(&h) / (1u << LEDGER_Q),
                                  .rss_anon_bytes = status.rss_anon_bytes};
    image_pace_point(&t->pace, &f->pace, now, clock_ns(CLOCK_THREAD_CPUTIME_ID) - began);
    if (!t->put && f->images >= IMAGES_MAX)
        bad = 0;
    else if (now >= t->pace.next_moment_ns)
        bad = add_moment(f, t, &h, &point, &thinned, e);
    else
        bad = recording_put_point(f->o.recording, h.image_id, &point, NULL, &thinned, e);
    if (thinned)
        image_pace_thin(&t->pace);
    return bad;
}

/* Commits. Then removes the tracks and the ledgers of images that have ended. */
static int commit(struct ledger_tracker *f, struct error *e)
{
    size_t kept = 0;
    int bad = unobserved_count_store(f->unseen, f->o.dir, f->o.recording, e);
    bad = bad ? bad : recording_commit(f->o.recording, e);
    if (bad)
        return bad;
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
    f->stored = 0;
    tag_tracker_committed(f->tags);
    return 0;
}

int ledger_tracker_step(struct ledger_tracker *f, int *wait_ms, struct error *e)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC), next, spent_ns = 0;
    int bad = 0;
    scan(f, now, false);
    for (size_t i = 0; i < f->tracks.len && !bad; i++) {
        struct track *t = &f->tracks.at[i];
        if ((f->stored >= STORED_MAX || spent_ns > HARVEST_NS) && !is_crowded(f))
            break;
        if (t->stored)
            continue;
        struct image_alive image = image_of(t);
        if (image_is_alive(&image)) {
            bad = now >= t->pace.next_point_ns ? add_point(f, t, now, e) : 0;
            continue;
        }
        uint64_t began = clock_ns(CLOCK_MONOTONIC);
        bad = harvest(f, t, now, e);
        spent_ns += clock_ns(CLOCK_MONOTONIC) - began;
    }
    now = clock_ns(CLOCK_MONOTONIC);
    bad = bad ? bad : tag_tracker_step(f->tags, now, false, e);
    if (!bad && now >= f->next_commit) {
        bad = commit(f, e);
        f->next_commit = now + f->commit_ns;
        f->commit_ns = f->commit_ns * 2 < COMMIT_LAST_NS ? f->commit_ns * 2 : COMMIT_LAST_NS;
    }
    next = tag_tracker_due(f->tags);
    uint64_t search = ledger_finder_due(f->finder, now);
    next = next < search ? next : search;
    vec_each (const struct track, t, &f->tracks)
        if (!t->stored && t->pace.next_point_ns < next)
            next = t->pace.next_point_ns;
    *wait_ms = next > now ? (int)((next - now) / MS) + 1 : 1;
    return bad;
}

int ledger_tracker_finish(struct ledger_tracker *f, struct error *e)
{
    int bad = 0;
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    f->last = true;
    scan(f, now, true);
    for (size_t i = 0; i < f->tracks.len && !bad; i++) {
        struct track *t = &f->tracks.at[i];
        if (t->stored)
            continue;
        struct image_alive image = image_of(t);
        if (!image_is_alive_still(&image)) {
            bad = harvest(f, t, now, e);
            continue;
        }
        read_status(t);
        bad = put_profile(f, t, read_image(f, t, true), true, e);
    }
    bad = bad ? bad : tag_tracker_step(f->tags, now, true, e);
    return bad ? bad : commit(f, e);
}
