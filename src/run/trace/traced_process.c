/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/trace/traced_process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "collect/ledger/ledger_copy.h"
#include "collect/process/proc.h"
#include "collect/trace/ring_image.h"
#include "collect/trace/trace_switch.h"

static int explain_none(const struct traced_process *t, pid_t pid, struct error *e)
{
    const int bad = ledger_scan_explain(pid, t->scan.unreadable, "rings", e);
    if (bad && (!t->entry || !t->entry->alive))
        return bad;
    if (!t->entry && proc_has_agent(pid))
        return error_set(e, ENOENT, "process %d has not yet allocated memory: wait until it has", (int)pid);
    if (t->entry && !t->entry->alive)
        return error_set(e, ENOENT, "process %d, which has ended, wrote no events", (int)pid);
    const struct ledger_entry *of_tags = ledger_scan_latest(&t->scan.tags);
    if (of_tags && of_tags->alive && of_tags->path)
        return error_set(
            e, ENOENT,
            "process %d has written no events yet: allium set %d trace=user, or allium trace %d, lets "
            "it write its own",
            (int)pid, (int)pid, (int)pid);
    return trace_switch_explain(pid, "", e);
}

static void read_comm(struct traced_process *t)
{
    struct ledger_header h;
    int fd = ledger_entry_open(t->entry);
    if (fd >= 0 && !ledger_copy_header(fd, &h, NULL))
        memcpy(t->comm, h.comm, sizeof(h.comm) < sizeof(t->comm) ? sizeof(h.comm) : sizeof(t->comm) - 1);
    if (fd >= 0)
        close(fd);
}

/* Snapshots, and traces that begin later, go by time. */
static int check_clock(const struct traced_process *t, struct error *e)
{
    struct ring_image image;
    if (ring_image_look(&image, t->dir, t->rings))
        return 0; /* the reader of the rings says why */
    const uint32_t clock = ring_reader_header(image.reader)->clock;
    ring_image_close(&image);
    if (clock == RING_CLOCK_TSC || clock == RING_CLOCK_MONOTONIC)
        return 0;
    return error_set(e, EOPNOTSUPP, "%s of process %d have no times: it was started with --clock %s",
                     clock == RING_CLOCK_EVERY ? "most events" : "the events", (int)t->named,
                     clock == RING_CLOCK_NONE    ? "none"
                     : clock == RING_CLOCK_EVERY ? "every:N"
                                                 : "counter");
}

static bool has_rings(const struct ledger_entry *entry)
{
    char *path = ring_image_path(entry);
    const bool there = path && !access(path, F_OK);
    free(path);
    return there;
}

/* Looks at the agent's ledger, then at one of tags. */
static bool find_ledger(struct traced_process *t, bool later)
{
    const struct ledger_entry *of_tags = ledger_scan_latest(&t->scan.tags);
    t->entry = ledger_scan_latest(&t->scan.list);
    t->has_rings = t->entry && has_rings(t->entry);
    if (t->has_rings || !of_tags)
        return t->has_rings;
    t->has_rings = has_rings(of_tags);
    if (!t->has_rings && !(later && of_tags->alive && of_tags->path))
        return false;
    t->entry = of_tags;
    return true;
}

int traced_process_find(struct traced_process *t, pid_t pid, bool later, struct error *e)
{
    uint64_t id;
    *t = (struct traced_process){.entry = NULL};
    ledger_scan_process(&t->scan, pid);
    if (!find_ledger(t, later)) {
        const int bad = explain_none(t, pid, e);
        traced_process_release(t);
        return bad;
    }
    t->dir = ring_image_path(t->entry);
    char *slash = strrchr(t->dir, '/');
    *slash = '\0';
    t->rings = mem_strdup(slash + 1);
    ring_image_name(t->rings, &t->named, &id);
    read_comm(t);
    const int bad = t->has_rings ? check_clock(t, e) : 0;
    if (bad)
        traced_process_release(t);
    return bad;
}

void traced_process_release(struct traced_process *t)
{
    free(t->dir);
    free(t->rings);
    ledger_scan_release(&t->scan);
}
