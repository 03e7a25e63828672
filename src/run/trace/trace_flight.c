/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/trace/trace_flight.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"
#include "base/vec.h"
#include "collect/ledger/ledger_copy.h"
#include "collect/ledger/ledger_folder.h"
#include "collect/trace/ring_image.h"
#include "collect/trace/tick_clock.h"
#include "collect/trace/trace_dir.h"
#include "run/trace/trace_budget.h"
#include "run/trace/kernel_follow.h"
#include "run/trace/trace_snapshot.h"
#include "run/watch.h"
#include "run/worker_thread.h"

#define STEP_NS        50000000u
#define LOOK_NS        5000000u /* between looks at what the program asks */
#define BUSY_NS        1000000u /* between looks at events, while there are many */
#define SECOND_NS      UINT64_C(1000000000)
#define REASON_MOST    56u
#define GROWTH_LOOKS   8u /* in the time over which an alert looks for growth */
#define GROWTH_MOST_NS (600 * SECOND_NS)
#define ENDED_MAX      8u /* processes that have ended, and whose rings stay */

/* An image whose rings are there. */
struct aboard {
    struct ring_image image;
    char *name; /* of the rings */
    bool ended;
    struct user_events *user;
    uint64_t asked; /* calls of ALLIUM_SNAPSHOT() */
    struct alert_state states[TRACE_ALERTS_MAX][ALERT_TERMS_MAX];
};

struct kept_snapshot {
    char *path;
    uint64_t bytes;
};

struct trace_flight {
    struct trace_flight_options o;
    char *dir;
    int folder;
    pthread_t thread;
    atomic_bool stop;
    struct tick_anchor first; /* from before the command began */
    struct tick_clock clock;  /* of a snapshot */
    struct trace_budget budget;
    struct VEC(struct aboard) images;
    struct VEC(struct kept_snapshot) kept;
    uint64_t now_ns, step_ns, next_ns, snapped_ns; /* step_ns, next_ns: when the next one is due */
    struct event_triggers *events;                 /* NULL: there are none */
    struct watch *growth[TRACE_ALERTS_MAX];        /* by alert; NULL: it does not ask for growth */
    struct suppressions *dismissed;                /* none */
    uint64_t growth_ns[TRACE_ALERTS_MAX];          /* when it is looked at next */
    struct trace_flight_counts counts;
    int bad;
    struct error error;
};

static bool is_known(const struct trace_flight *f, uint64_t id)
{
    vec_each (const struct aboard, i, &f->images)
        if (i->image.id == id)
            return true;
    return false;
}

static void scan(struct trace_flight *f)
{
    DIR *d = opendir(f->dir);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        struct aboard i = {.ended = false};
        pid_t pid;
        uint64_t id;
        if (!ring_image_name(entry->d_name, &pid, &id) || is_known(f, id) ||
            ring_image_look(&i.image, f->dir, entry->d_name))
            continue;
        i.name = mem_strdup(entry->d_name);
        i.user = user_events_new(f->dir, i.image.pid, i.image.id);
        *vec_push(&f->images) = i;
        f->counts.images++;
        f->counts.mono_images += !ring_reader_header(i.image.reader)->clock;
    }
    if (d)
        closedir(d);
}

static void release(const struct trace_flight *f, struct aboard *i)
{
    free(i->name);
    user_events_free(i->user);
    if (i->ended)
        ring_image_remove(&i->image, f->dir);
    else
        ring_image_close(&i->image);
}

/* Removes the oldest snapshots, until the rest and the newest fit. */
static void make_room(struct trace_flight *f)
{
    uint64_t bytes = 0;
    size_t gone = 0;
    vec_each (const struct kept_snapshot, k, &f->kept)
        bytes += k->bytes;
    while (bytes > f->budget.limit_bytes && gone + 1 < f->kept.len) {
        struct kept_snapshot *oldest = &f->kept.at[gone++];
        bytes -= oldest->bytes;
        trace_dir_remove(oldest->path);
        free(oldest->path);
        f->counts.removed++;
    }
    memmove(f->kept.at, f->kept.at + gone, (f->kept.len - gone) * sizeof(*f->kept.at));
    f->kept.len -= gone;
}

static int write_snapshot(struct trace_flight *f, const char *path)
{
    struct trace_snapshot_options o = {.clock = &f->clock};
    struct VEC(struct trace_snapshot_source) sources = {0};
    struct trace_snapshot_counts n = {0};
    struct buf link = BUF_INIT;
    struct event_class *of_kernel = NULL;
    if (f->o.kernel) {
        o.kernel.rings = kernel_follow_rings(f->o.kernel, &o.kernel.bytes);
        o.kernel.classes = of_kernel = kernel_follow_classes(f->o.kernel, &o.kernel.n_classes);
    }
    vec_each (const struct aboard, i, &f->images)
        *vec_push(&sources) = (struct trace_snapshot_source){f->dir, i->name};
    int bad = trace_budget_ask(&f->budget, 0, f->now_ns) == TRACE_GOES_ON
                  ? trace_dir_make(path, false, &f->error)
                  : error_set(&f->error, ENOSPC, "%s: the file system is full", path);
    bad = bad ? bad : trace_snapshot_write(path, sources.at, sources.len, &o, &n, &f->error);
    buf_printf(&link, "%s/profile.allium", path);
    if (!bad && symlink("../profile.allium", buf_str(&link)))
        bad = error_set(&f->error, errno, "%s: %s", buf_str(&link), strerror(errno));
    if (bad)
        trace_dir_remove(path);
    f->counts.events = n.events;
    f->counts.lost = n.lost;
    f->counts.kernel_events = n.kernel_events;
    f->counts.user = n.user;
    buf_release(&link);
    vec_release(&sources);
    free(of_kernel);
    return bad;
}

/* Appends the reason as a part of a file's name. */
static void add_reason(char *name, size_t bytes, const char *reason)
{
    size_t n = strlen(name);
    for (; *reason && n + 1 < bytes && n < REASON_MOST; reason++)
        name[n++] = isalnum((unsigned char)*reason) || strchr("-_.", *reason) ? *reason : '_';
    name[n] = '\0';
}

static void snapshot(struct trace_flight *f, const char *reason)
{
    struct buf path = BUF_INIT;
    if (f->snapped_ns && f->now_ns - f->snapped_ns < SECOND_NS) {
        f->counts.skipped++;
        return;
    }
    f->snapped_ns = f->now_ns = clock_ns(CLOCK_MONOTONIC);
    scan(f);
    /* The events lie in the past, between the two anchors. */
    tick_clock_init(&f->clock, f->first, tick_clock_anchor());
    char name[sizeof(f->counts.last)];
    snprintf(name, sizeof(name), "%u-", ++f->counts.snapshots);
    add_reason(name, sizeof(name), reason);
    buf_printf(&path, "%s/%s", f->o.folder, name);
    const int bad = write_snapshot(f, buf_str(&path));
    if (bad) {
        f->bad = bad;
        f->counts.failed++;
        buf_release(&path);
        return;
    }
    memcpy(f->counts.last, name, sizeof(name));
    const uint64_t bytes = trace_dir_bytes(buf_str(&path));
    *vec_push(&f->kept) = (struct kept_snapshot){buf_detach(&path), bytes};
    make_room(f);
}

/* Estimated live bytes of an image. Returns false if its ledger cannot be read. */
static bool find_live(const struct trace_flight *f, const struct ring_image *i, double *bytes)
{
    struct buf path = BUF_INIT;
    struct ledger_header h;
    buf_printf(&path, "%s/", f->dir);
    ring_image_add_name(&path, i, LEDGER_SUFFIX);
    int fd = ledger_file_open(buf_str(&path), O_RDONLY);
    const bool good = fd >= 0 && !ledger_copy_header(fd, &h, NULL);
    if (good)
        *bytes = (double)ledger_live_bytes_q(&h) / (1u << LEDGER_Q);
    if (fd >= 0)
        close(fd);
    buf_release(&path);
    return good;
}

/* Returns whether an alert is to be reported now. */
static bool judge(struct trace_flight *f)
{
    struct alert_facts facts = {.time_ns = clock_ns(CLOCK_REALTIME)};
    const struct trace_triggers *t = f->o.triggers;
    bool any = false;
    vec_each (struct aboard, i, &f->images) {
        if (!t->n_alerts || i->ended || !find_live(f, &i->image, &facts.live_bytes))
            continue;
        for (unsigned k = 0; k < t->n_alerts; k++)
            for (size_t n = 0; n < t->alerts[k].n; n++)
                any |= t->alerts[k].terms[n].kind != ALERT_GROWING &&
                       alert_judge(&t->alerts[k].terms[n], &i->states[k][n], &facts);
    }
    return any;
}

/* ---- growth, as `allium watch` finds it ---- */

/* Returns how often an alert looks for growth; 0: it does not. */
static uint64_t growth_pace_ns(const struct alert *a)
{
    uint64_t pace = 0;
    for (size_t n = 0; n < a->n; n++) {
        const uint64_t part = a->terms[n].for_ns / GROWTH_LOOKS;
        if (a->terms[n].kind == ALERT_GROWING && (!pace || part < pace))
            pace = part < SECOND_NS / 4 ? SECOND_NS / 4 : part > GROWTH_MOST_NS ? GROWTH_MOST_NS : part;
    }
    return pace;
}

static void begin_growth(struct trace_flight *f)
{
    const struct trace_triggers *t = f->o.triggers;
    f->dismissed = suppressions_new();
    for (unsigned k = 0; k < t->n_alerts; k++)
        if (growth_pace_ns(&t->alerts[k]))
            f->growth[k] = watch_new(&(struct watch_options){.older_than_ns = WATCH_OLDER_DEFAULT,
                                                             .nameless = true,
                                                             .dir = f->dir,
                                                             .alert = &t->alerts[k],
                                                             .dismissed = f->dismissed});
}

/* Returns whether an alert on growth is to be reported now. */
static bool find_growth(struct trace_flight *f)
{
    bool any = false;
    for (unsigned k = 0; k < f->o.triggers->n_alerts; k++) {
        struct error unread = {""};
        if (!f->growth[k] || f->now_ns < f->growth_ns[k])
            continue;
        f->growth_ns[k] = f->now_ns + growth_pace_ns(&f->o.triggers->alerts[k]);
        struct watch_snapshot *l = watch_take_snapshot(f->growth[k], WATCH_SNAPSHOT_CHANGES, &unread);
        vec_each (const struct watch_snapshot_alert, a, &l->alerts)
            any |= a->row != PROFILE_NONE; /* judge() knows the others */
        watch_snapshot_free(l);
    }
    return any;
}

/* ---- what the program asks, and events ---- */

/* Takes the calls of ALLIUM_SNAPSHOT() of all images. `opens`: looks for new tables. */
static void take_requests(struct trace_flight *f, bool opens)
{
    char reason[USER_EVENTS_REASON_BYTES], first[USER_EVENTS_REASON_BYTES] = "";
    uint64_t n = 0;
    vec_each (struct aboard, i, &f->images) {
        const uint64_t asked = user_events_asked(i->user, opens, i->asked, reason);
        if (asked <= i->asked)
            continue;
        if (!*first)
            memcpy(first, reason, sizeof(first));
        n += asked - i->asked;
        i->asked = asked;
    }
    if (!n)
        return;
    f->counts.skipped += n - 1;
    snapshot(f, *first ? first : "program");
}

/* Looks at the events of all images. Returns whether there were any. */
static bool look_at_events(struct trace_flight *f)
{
    const uint64_t before = f->events ? event_triggers_counts(f->events).looked : 0;
    struct tick_clock clock;
    uint64_t n = 0;
    if (!f->events || !f->images.len)
        return false;
    tick_clock_init(&clock, f->first, tick_clock_anchor());
    vec_each (struct aboard, i, &f->images)
        n += event_triggers_look(f->events, &i->image, i->user, &clock);
    if (n) {
        f->counts.skipped += n - 1;
        snapshot(f, "event");
    }
    return event_triggers_counts(f->events).looked != before;
}

static void note_ends(struct trace_flight *f)
{
    vec_each (struct aboard, i, &f->images)
        i->ended = i->ended || ring_image_has_ended(&i->image, f->dir);
}

/* The rings of the processes that ended last stay. Images of the command are never removed before the end. */
static void remove_ended(struct trace_flight *f)
{
    size_t kept = 0, ended = 0;
    vec_each (const struct aboard, i, &f->images)
        ended += i->ended && i->image.pid != f->o.pid;
    vec_each (struct aboard, i, &f->images) {
        if (i->ended && i->image.pid != f->o.pid && ended > ENDED_MAX) {
            release(f, i);
            ended--;
        } else {
            f->images.at[kept++] = *i;
        }
    }
    f->images.len = kept;
}

/* Takes all that there is until now. */
static void catch_up(struct trace_flight *f)
{
    scan(f);
    note_ends(f);
    take_requests(f, true);
    look_at_events(f);
}

static void step(struct trace_flight *f)
{
    const uint64_t every_ns = f->o.triggers->every_ns;
    f->step_ns = f->now_ns + STEP_NS;
    catch_up(f);
    remove_ended(f);
    if (judge(f))
        snapshot(f, "alert");
    if (find_growth(f))
        snapshot(f, "growing");
    if (every_ns && f->now_ns >= f->next_ns) {
        snapshot(f, "every");
        f->next_ns = f->now_ns + every_ns;
    }
}

static void *watch_over(void *arg)
{
    struct trace_flight *f = arg;
    while (!atomic_load(&f->stop)) {
        f->now_ns = clock_ns(CLOCK_MONOTONIC);
        if (f->now_ns >= f->step_ns)
            step(f);
        else
            take_requests(f, false);
        const bool busy = look_at_events(f);
        nanosleep(&(struct timespec){.tv_nsec = busy ? BUSY_NS : LOOK_NS}, NULL);
    }
    return NULL;
}

static void release_all(struct trace_flight *f)
{
    vec_each (struct aboard, i, &f->images)
        release(f, i);
    vec_each (struct kept_snapshot, k, &f->kept)
        free(k->path);
    vec_release(&f->images);
    vec_release(&f->kept);
    for (int k = 0; k < TRACE_ALERTS_MAX; k++)
        watch_free(f->growth[k]);
    suppressions_free(f->dismissed);
    event_triggers_free(f->events);
    if (f->folder >= 0)
        close(f->folder);
    free(f->dir);
    free(f);
}

int trace_flight_begin(struct trace_flight **out, const struct trace_flight_options *o, struct error *e)
{
    struct trace_flight *f = mem_alloc(sizeof(*f));
    f->o = *o;
    f->dir = mem_strdup(o->dir);
    f->first = tick_clock_anchor();
    f->now_ns = clock_ns(CLOCK_MONOTONIC);
    f->next_ns = f->now_ns + o->triggers->every_ns;
    f->events = o->triggers->n_events ? event_triggers_new(o->triggers) : NULL;
    begin_growth(f);
    f->folder = open(o->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int bad = f->folder < 0 ? errno : -trace_budget_begin(&f->budget, f->folder, o->limit_bytes);
    bad = bad ? bad : worker_thread_start(&f->thread, watch_over, f);
    if (bad) {
        release_all(f);
        return error_set(e, bad, "%s: %s", o->folder, strerror(bad));
    }
    *out = f;
    return 0;
}

static void note_looks(struct trace_flight *f)
{
    if (!f->events)
        return;
    f->counts.looked = event_triggers_counts(f->events);
    for (unsigned k = 0; k < f->o.triggers->n_events; k++)
        event_triggers_unfit(f->events, k, &f->counts.unfit[k]);
}

int trace_flight_end(struct trace_flight *f, int wait_status, struct trace_flight_counts *out,
                     struct error *e)
{
    if (!f)
        return 0;
    atomic_store(&f->stop, true);
    pthread_join(f->thread, NULL);
    f->now_ns = clock_ns(CLOCK_MONOTONIC);
    catch_up(f);
    if (WIFSIGNALED(wait_status) ||
        (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) && f->o.triggers->exit)) {
        f->snapped_ns = 0; /* the end is always worth one */
        snapshot(f, WIFSIGNALED(wait_status) ? "signal" : "exit");
    }
    scan(f);
    note_ends(f); /* so that their files are removed */
    note_looks(f);
    const int bad = f->bad;
    *out = f->counts;
    if (bad && e)
        *e = f->error;
    release_all(f);
    return bad;
}
