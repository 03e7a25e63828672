/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/tools/oomkill_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/sigsafe/clock_ns.h"
#include "base/units.h"

#define LOAD_ONE 2048.0 /* the kernel's FIXED_1 */

static void add_pages(struct buf *b, const char *before, int64_t pages)
{
    char text[UNITS_TEXT_BYTES];
    buf_printf(b, "%s%s", before, units_format_size(text, (double)pages * (double)sysconf(_SC_PAGESIZE)));
}

void oomkill_add_path(struct buf *b, const struct oomkill_path *path)
{
    uint32_t levels = path->levels < OOMKILL_LEVELS ? path->levels : OOMKILL_LEVELS;
    if (path->cut)
        buf_addstr(b, "/...");
    for (uint32_t i = levels; i-- > 0;)
        buf_printf(b, "/%.*s", OOMKILL_NAME_BYTES, path->name[i]);
    if (!levels && !path->cut)
        buf_addch(b, '/');
}

void oomkill_add_comm(struct buf *b, const char comm[static SYS_COMM_BYTES])
{
    for (int i = 0; i < SYS_COMM_BYTES && comm[i]; i++)
        buf_addch(b, (unsigned char)comm[i] < ' ' ? '?' : comm[i]);
}

int64_t oomkill_resident(const struct oomkill_process *p)
{
    return p->memory.anon_pages + p->memory.file_pages + p->memory.shmem_pages;
}

static int larger_first(const void *a, const void *b)
{
    int64_t x = oomkill_resident(a), y = oomkill_resident(b);
    return x > y ? -1 : x < y;
}

void oomkill_largest(const struct oomkill_event *e, struct oomkill_context *context)
{
    context->n_largest = e->n_largest < OOMKILL_LARGEST ? e->n_largest : OOMKILL_LARGEST;
    memcpy(context->largest, e->largest, context->n_largest * sizeof(*context->largest));
    for (uint32_t i = 0; i < context->n_largest; i++)
        context->largest[i].comm[SYS_COMM_BYTES - 1] = '\0';
    qsort(context->largest, context->n_largest, sizeof(*context->largest), larger_first);
}

void oomkill_loads(const struct oomkill_event *e, struct oomkill_context *context)
{
    *context = (struct oomkill_context){.loads_known = e->loads_known};
    for (int i = 0; i < 3; i++)
        context->loads[i] = (double)e->loads[i] / LOAD_ONE;
    if (context->loads_known)
        return;
    /* Anew every 5 s: what was read a moment later is mostly the same. */
    context->loads_known = getloadavg(context->loads, 3) == 3;
    context->loads_later_ns = clock_ns(CLOCK_MONOTONIC) - e->head.time_ns;
}

/* A process outside of our PID namespace has no number here. */
static void add_pid(struct buf *b, uint32_t pid)
{
    if (pid)
        buf_printf(b, "pid %u", pid);
    else
        buf_addstr(b, "outside of this PID namespace");
}

static void add_why(struct buf *b, const struct oomkill_event *e)
{
    switch (e->scope) {
    case OOMKILL_MEMCG:
        buf_addstr(b, "memory cgroup ");
        oomkill_add_path(b, &e->memcg);
        buf_addstr(b, e->limit_pages == OOMKILL_NO_LIMIT ? " had no room" : " is full");
        break;
    case OOMKILL_CPUSET:
        buf_addstr(b, "the memory nodes of its cpuset are full");
        break;
    case OOMKILL_MEMPOLICY:
        buf_addstr(b, "the memory nodes of its memory policy are full");
        break;
    default:
        buf_addstr(b, e->exact && e->order < 0 ? "requested with SysRq" : "the machine is out of memory");
    }
    buf_addstr(b, e->exact ? "\n" : " (inferred)\n");
}

static void add_limit(struct buf *b, const struct oomkill_event *e)
{
    if (e->scope == OOMKILL_MEMCG) {
        add_pages(b, e->limit == MEMCG_MEMORY ? "memory used: " : "memory and swap used: ",
                  (int64_t)e->usage_pages);
        if (e->limit_pages != OOMKILL_NO_LIMIT)
            add_pages(b, " of a limit of ", (int64_t)e->limit_pages);
        buf_addch(b, '\n');
    } else if (e->exact) {
        add_pages(b, "memory and swap of the machine: ", (int64_t)e->total_pages);
        buf_addch(b, '\n');
    }
}

static void add_trigger(struct buf *b, const struct oomkill_event *e, const struct oomkill_context *context)
{
    const struct sys_task *t = &e->head.task;
    if (e->victim_requested) {
        buf_addstr(b, "the victim requested the memory");
    } else {
        buf_addstr(b, "requested by ");
        oomkill_add_comm(b, t->comm);
        buf_addstr(b, " (");
        add_pid(b, t->pid);
        buf_printf(b, ", uid %u)", t->uid);
    }
    if (e->exact && e->order >= 0)
        buf_printf(b, ": order %d, %s", e->order, context->gfp ? context->gfp : "gfp not known");
    buf_addch(b, '\n');
}

static void add_victim(struct buf *b, const struct oomkill_event *e, const struct oomkill_context *context)
{
    const struct oomkill_memory *m = &e->memory;
    char text[UNITS_TEXT_BYTES];
    add_pages(b, e->approximate ? "it had about " : "it had ", m->anon_pages);
    add_pages(b, " anonymous, ", m->file_pages);
    add_pages(b, " of files, ", m->shmem_pages);
    add_pages(b, " shared, ", m->swap_pages);
    buf_printf(b, " in swap, %s of page tables", units_format_size(text, (double)e->page_table_bytes));
    add_pages(b, "; ", (int64_t)e->total_vm_pages);
    buf_printf(b, " mapped\nuid %u, oom_score_adj %d, cgroup ", e->victim_uid, e->oom_score_adj);
    oomkill_add_path(b, &e->victim_cgroup);
    if (context->container && *context->container)
        buf_printf(b, ", container %s", context->container);
    if (e->sharing)
        buf_printf(b, "; %u other process%s its memory and die%s with it", e->sharing,
                   e->sharing > 1 ? "es share" : " shares", e->sharing > 1 ? "" : "s");
    buf_addch(b, '\n');
}

static void add_loads(struct buf *b, const struct oomkill_context *context)
{
    char text[UNITS_TEXT_BYTES];
    if (!context->loads_known)
        return;
    buf_printf(b, "load %.2f %.2f %.2f", context->loads[0], context->loads[1], context->loads[2]);
    if (context->loads_later_ns)
        buf_printf(b, " (read %s later)", units_format_duration(text, (double)context->loads_later_ns));
    buf_addch(b, '\n');
}

static void add_largest(struct buf *b, const struct oomkill_event *e, const struct oomkill_context *context)
{
    if (!context->n_largest)
        return;
    buf_printf(b, "largest of %s%u processes%s\n", e->walk_cut ? "the first " : "", e->processes,
               e->scope == OOMKILL_MEMCG ? "; * in the cgroup that is full" : "");
    buf_addstr(b, "        PID   RESIDENT       SWAP   ADJ  COMM\n");
    for (uint32_t i = 0; i < context->n_largest; i++) {
        const struct oomkill_process *p = &context->largest[i];
        char rss[UNITS_TEXT_BYTES], swap[UNITS_TEXT_BYTES], pid[12] = "-";
        const double page = (double)sysconf(_SC_PAGESIZE);
        units_format_size(rss, (double)oomkill_resident(p) * page);
        units_format_size(swap, (double)p->memory.swap_pages * page);
        if (p->pid)
            snprintf(pid, sizeof(pid), "%u", p->pid);
        buf_printf(b, "  %c %7s %10s %10s %5d  ", p->in_memcg ? '*' : ' ', pid, rss, swap, p->oom_score_adj);
        oomkill_add_comm(b, p->comm);
        buf_addstr(b, p->pid && p->pid == e->victim_pid ? "  <- the victim\n" : "\n");
    }
}

void oomkill_text(struct buf *b, const struct oomkill_event *e, const struct oomkill_context *context)
{
    bool known = e->victim_comm[0];
    if (known)
        oomkill_add_comm(b, e->victim_comm);
    else
        buf_addstr(b, "a process");
    buf_addstr(b, " (");
    add_pid(b, e->victim_pid);
    if (e->victim_inner_pid && e->victim_inner_pid != e->victim_pid)
        buf_printf(b, ", in its container %u", e->victim_inner_pid);
    buf_printf(b, ") %s: ",
               known && e->outcome == OOMKILL_EXITING ? "was exiting, and got the reserved memory"
                                                      : "was killed");
    add_why(b, e);
    add_limit(b, e);
    add_trigger(b, e, context);
    if (known)
        add_victim(b, e, context);
    add_loads(b, context);
    add_largest(b, e, context);
}
