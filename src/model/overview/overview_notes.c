/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notes on unusual values, the first lines to read when a machine is in trouble. Each threshold is in the function that
 * writes the note; a machine in normal operation gets no notes.
 */
#include "model/overview/overview.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/units.h"

#define HOUR_NS      (UINT64_C(3600) * 1000000000u)
#define BUSY_BYTES_S 1048576.0

#define MAJOR_FAULTS 1000.0 /* a second */
#define HUGE_FAILED  100.0

/* The subjects that a tool of `allium sys` tells more of. */
enum subject {
    NO_TOOL,
    ZONE_LOW,
    ZONE_MIN,
    LITTLE_LEFT,
    SWAP_FULL,
    UNACCOUNTED,
    SLAB,
    HUGE_UNUSED,
    HUGE_FAILS,
    PRESSURE,
    KSWAPD,
    DIRECT_RECLAIM,
    CGROUP_THRASHES,
    MACHINE_THRASHES,
    SWAP_INS,
    FILE_READS,
    NODES,
    KILLS,
    SUBJECTS
};

/* What answers best stands first; a tool that this version has not is passed over. */
static const char *const answers[SUBJECTS][2] = {
    [ZONE_LOW] = {"vmscan"},
    [ZONE_MIN] = {"drsnoop"},
    [LITTLE_LEFT] = {"faults --growth"},
    [SWAP_FULL] = {"swapin", "faults --growth"},
    [UNACCOUNTED] = {"memleak", "kpages --live"},
    [SLAB] = {"memleak", "kmem --live"},
    [HUGE_UNUSED] = {"hfaults"},
    [HUGE_FAILS] = {"hfaults"},
    [PRESSURE] = {"drsnoop"},
    [KSWAPD] = {"vmscan"},
    [DIRECT_RECLAIM] = {"drsnoop"},
    [CGROUP_THRASHES] = {"drsnoop"},
    [MACHINE_THRASHES] = {"vmscan"},
    [SWAP_INS] = {"swapin", "faults"},
    [FILE_READS] = {"ffaults", "faults --by file"},
    [NODES] = {"numamove"},
    [KILLS] = {"oomkill"},
};

static bool has_tool(const struct overview *m, const char *answer)
{
    char *name = mem_strndup(answer, strcspn(answer, " "));
    bool has = m->has_tool && m->has_tool(name);
    free(name);
    return has;
}

static void add_answer(struct buf *b, const struct overview *m, enum subject subject)
{
    for (size_t i = 0; i < 2 && answers[subject][i]; i++)
        if (has_tool(m, answers[subject][i])) {
            buf_printf(b, " (allium sys %s)", answers[subject][i]);
            return;
        }
}

static void say(struct overview *m, bool urgent, enum subject subject, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void say(struct overview *m, bool urgent, enum subject subject, const char *fmt, ...)
{
    struct buf text = BUF_INIT;
    va_list args;
    va_start(args, fmt);
    buf_vprintf(&text, fmt, args);
    va_end(args);
    add_answer(&text, m, subject);
    *vec_push(&m->notes) = (struct overview_note){.text = buf_detach(&text), .urgent = urgent};
}

static double percent(double part, double whole)
{
    return whole > 0 ? part * 100 / whole : 0;
}

static void note_zones(struct overview *m)
{
    char free_text[UNITS_TEXT_BYTES], mark[UNITS_TEXT_BYTES];
    vec_each (const struct overview_zone, z, &m->zones) {
        bool min = z->free_bytes < z->min_bytes;
        if (z->free_bytes >= z->low_bytes)
            continue;
        units_format_size(free_text, (double)z->free_bytes);
        units_format_size(mark, (double)(min ? z->min_bytes : z->low_bytes));
        say(m, min, min ? ZONE_MIN : ZONE_LOW,
            "zone %s of node %u has %s free, below its %s watermark of %s: %s", z->name, z->node, free_text,
            min ? "min" : "low", mark, min ? "allocations have to reclaim first" : "kswapd reclaims");
    }
}

static void note_space(struct overview *m)
{
    char left[UNITS_TEXT_BYTES], all[UNITS_TEXT_BYTES];
    double total = (double)overview_memory_of(m, OVERVIEW_TOTAL);
    double available = (double)overview_memory_of(m, OVERVIEW_AVAILABLE);
    double swap = (double)overview_memory_of(m, OVERVIEW_SWAP_TOTAL);
    double swap_free = (double)overview_memory_of(m, OVERVIEW_SWAP_FREE);
    double unaccounted = (double)overview_memory_of(m, OVERVIEW_UNACCOUNTED);
    if (overview_memory_has(m, OVERVIEW_AVAILABLE) && percent(available, total) < 5)
        say(m, true, LITTLE_LEFT, "only %s of %s are available (%.1f %%)", units_format_size(left, available),
            units_format_size(all, total), percent(available, total));
    if (swap > 0 && percent(swap_free, swap) < 10)
        say(m, true, SWAP_FULL, "swap is %.0f %% full: %s of %s left", percent(swap - swap_free, swap),
            units_format_size(left, swap_free), units_format_size(all, swap));
    if (percent(unaccounted, total) > 10)
        say(m, false, UNACCOUNTED,
            "%s (%.0f %%) belong to no kind of memory that the kernel reports: a driver, or a leak in the "
            "kernel",
            units_format_size(left, unaccounted), percent(unaccounted, total));
    if (percent((double)overview_memory_of(m, OVERVIEW_SLAB_UNRECLAIMABLE), total) > 20)
        say(m, false, SLAB, "%s (%.0f %%) are slab that cannot be reclaimed",
            units_format_size(left, (double)overview_memory_of(m, OVERVIEW_SLAB_UNRECLAIMABLE)),
            percent((double)overview_memory_of(m, OVERVIEW_SLAB_UNRECLAIMABLE), total));
    vec_each (const struct overview_huge, h, &m->huge) {
        uint64_t unused = h->free > h->reserved ? h->free - h->reserved : 0;
        double idle = (double)unused * (double)h->size_bytes;
        if (percent(idle, total) > 10)
            say(m, false, HUGE_UNUSED, "%s (%.0f %%) are unused in huge pages of %s",
                units_format_size(left, idle), percent(idle, total),
                units_format_size(all, (double)h->size_bytes));
    }
}

/* Returns the stalled share of the last ten seconds or of the interval, whichever is larger, in percent. */
static double worst(const struct overview_stall *s)
{
    return s->last > s->avg10 ? s->last : s->avg10;
}

static void note_pressure(struct overview *m)
{
    const struct overview_pressure *memory = &m->pressure[OVERVIEW_PSI_MEMORY],
                                   *io = &m->pressure[OVERVIEW_PSI_IO];
    if (memory->full.known && worst(&memory->full) >= 5)
        say(m, true, PRESSURE,
            "memory pressure is high: all tasks waited for memory %.0f %% of the time, some %.0f %%",
            worst(&memory->full), worst(&memory->some));
    else if (memory->some.known && worst(&memory->some) >= 10)
        say(m, true, PRESSURE, "memory pressure is high: some task waited for memory %.0f %% of the time",
            worst(&memory->some));
    if (io->full.known && worst(&io->full) >= 20)
        say(m, false, NO_TOOL, "I/O pressure is high: all tasks waited for it %.0f %% of the time",
            worst(&io->full));
}

/* "; most major faults: eater (pid 77), 1.23k a second, in cgroup /a, which uses 99 % of its limit of 64 MiB" */
static void add_faulter(struct buf *b, const struct overview_faulter *f)
{
    char text[UNITS_TEXT_BYTES];
    if (!f->pid)
        return;
    buf_printf(b, "; most major faults: %s (pid %d), %s a second", f->name, f->pid,
               units_format_count(text, f->major_per_s));
    if (f->cgroup)
        buf_printf(b, ", in cgroup %s, which uses %.0f %% of its limit of %s", f->cgroup,
                   percent((double)f->usage_bytes, (double)f->limit_bytes),
                   units_format_size(text, (double)f->limit_bytes));
}

/* Returns whether a note has the process with the most major faults, and its cgroup. */
static bool note_reclaim(struct overview *m)
{
    char one[UNITS_TEXT_BYTES], other[UNITS_TEXT_BYTES];
    const double *rate = m->rate;
    double refaults = (rate[OVERVIEW_REFAULTED_ANON] > 0 ? rate[OVERVIEW_REFAULTED_ANON] : 0) +
                      (rate[OVERVIEW_REFAULTED_FILE] > 0 ? rate[OVERVIEW_REFAULTED_FILE] : 0);
    if (rate[OVERVIEW_SCANNED_KSWAPD] > 0 || rate[OVERVIEW_KSWAPD_RUNS] > 0)
        say(m, false, KSWAPD,
            "kswapd is busy: woken %.3g times a second, it scans %s and reclaims %s a second",
            rate[OVERVIEW_KSWAPD_RUNS], units_format_size(one, rate[OVERVIEW_SCANNED_KSWAPD]),
            units_format_size(other, rate[OVERVIEW_STOLEN_KSWAPD]));
    if (rate[OVERVIEW_DIRECT_STALLS] > 0)
        say(m, true, DIRECT_RECLAIM, "%.3g allocations a second stall in direct reclaim",
            rate[OVERVIEW_DIRECT_STALLS]);
    struct buf who = BUF_INIT;
    add_faulter(&who, &m->faulter);
    if (refaults > BUSY_BYTES_S)
        say(m, true, m->faulter.cgroup ? CGROUP_THRASHES : MACHINE_THRASHES,
            "%s a second are read back soon after they were reclaimed: %s thrashes%s",
            units_format_size(one, refaults), m->faulter.cgroup ? "a cgroup" : "the machine", buf_str(&who));
    if (rate[OVERVIEW_SWAPPED_IN] > BUSY_BYTES_S)
        say(m, true, SWAP_INS, "%s a second come in from swap%s",
            units_format_size(one, rate[OVERVIEW_SWAPPED_IN]), refaults > BUSY_BYTES_S ? "" : buf_str(&who));
    buf_release(&who);
    return refaults > BUSY_BYTES_S || rate[OVERVIEW_SWAPPED_IN] > BUSY_BYTES_S;
}

/* Faults of files, unless a note on reclaim or swap has them; of huge pages; and what moves between nodes. */
static void note_faults(struct overview *m, bool noted)
{
    char text[UNITS_TEXT_BYTES];
    const double *rate = m->rate;
    if (!noted && rate[OVERVIEW_MAJOR_FAULTS] >= MAJOR_FAULTS)
        say(m, false, FILE_READS, "%s major faults a second wait for files to be read",
            units_format_count(text, rate[OVERVIEW_MAJOR_FAULTS]));
    if (rate[OVERVIEW_HUGE_FAILED] >= HUGE_FAILED)
        say(m, false, HUGE_FAILS, "%s faults a second want a huge page and get small ones",
            units_format_count(text, rate[OVERVIEW_HUGE_FAILED]));
    if (rate[OVERVIEW_NODE_MOVED] > BUSY_BYTES_S)
        say(m, false, NODES, "%s a second are moved between NUMA nodes, for tasks that run on another node",
            units_format_size(text, rate[OVERVIEW_NODE_MOVED]));
}

/* Adds the cause of a kill: "at the limit of cgroup /a". The name may be unknown, because the kernel may not have
 * printed the line that contains it. */
static void add_reason(struct buf *b, const struct overview_kill *k)
{
    if (k->cgroup_limit && k->cgroup)
        buf_printf(b, "at the limit of cgroup %s", k->cgroup);
    else
        buf_addstr(b, k->cgroup_limit ? "at the limit of a cgroup" : "because the machine was out of memory");
}

/* The kernel's log is a ring buffer: if it goes back less than an hour, there may have been more kills. */
static void say_kills(struct overview *m, unsigned n, const struct overview_kill *last)
{
    char ago[UNITS_TEXT_BYTES], back[UNITS_TEXT_BYTES];
    struct buf why = BUF_INIT, since = BUF_INIT;
    const bool some = m->kills_since_ns && m->taken_ns - m->kills_since_ns < HOUR_NS;
    add_reason(&why, last);
    if (some)
        buf_printf(&since, " (the log goes back %s)",
                   units_format_duration(back, (double)(m->taken_ns - m->kills_since_ns)));
    say(m, true, KILLS, "%s%u OOM kill%s in the last hour%s, the latest %s (pid %d), %s ago, %s",
        some ? "at least " : "", n, n == 1 ? "" : "s", buf_str(&since), last->name, last->pid,
        units_format_duration(ago, (double)(m->taken_ns - last->at_ns)), buf_str(&why));
    buf_release(&why);
    buf_release(&since);
}

static void note_kills(struct overview *m)
{
    const struct overview_kill *last = NULL;
    unsigned n = 0;
    double counted = m->rate[OVERVIEW_OOM_KILLS] * (double)m->interval_ns / 1e9;
    vec_each (const struct overview_kill, k, &m->kills) {
        if (!k->at_ns || m->taken_ns - k->at_ns > HOUR_NS)
            continue;
        last = k;
        n++;
    }
    if (last)
        say_kills(m, n, last);
    else if (counted >= 0.5)
        say(m, true, KILLS, "%.0f OOM kills since the previous snapshot, by the kernel's counter", counted);
}

/* `noted`: the cgroup that another note has; NULL: none. */
static void note_cgroups(struct overview *m, const char *noted)
{
    char limit[UNITS_TEXT_BYTES];
    vec_each (const struct overview_cgroup, c, &m->cgroups)
        if (overview_near_limit(c->usage_bytes, c->limit_bytes) && (!noted || strcmp(noted, c->path) != 0))
            say(m, false, NO_TOOL, "cgroup %s uses %.0f %% of its limit of %s", c->path,
                percent((double)c->usage_bytes, (double)c->limit_bytes),
                units_format_size(limit, (double)c->limit_bytes));
}

static void note_processes(struct overview *m)
{
    if (m->n_stuck)
        say(m, false, NO_TOOL,
            "%" PRIu32 " process%s or thread%s of the kernel in uninterruptible sleep (state D)", m->n_stuck,
            m->n_stuck == 1 ? "" : "es", m->n_stuck == 1 ? "" : "s");
    vec_each (const struct overview_process, p, &m->processes)
        if (p->query_result == OVERVIEW_MUTE)
            say(m, false, NO_TOOL, "%s (pid %d): some figures are missing, because its memory map is locked",
                p->name, p->pid);
}

void overview_note(struct overview *m)
{
    note_zones(m);
    note_space(m);
    const bool has_faulter = note_reclaim(m);
    note_faults(m, has_faulter);
    note_pressure(m);
    note_kills(m);
    note_cgroups(m, has_faulter ? m->faulter.cgroup : NULL);
    note_processes(m);
}
