/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/sigsafe/clock_ns.h"
#include "collect/addrspace/address_spaces_internal.h"

#include <dirent.h>
#include <errno.h>
#include <time.h>

#include "collect/addrspace/proc_maps.h"
#include "collect/kernel/proc_text.h"
#include "collect/process/proc.h"

/* /proc has the start of a process by another clock, in steps of 10 ms, and from before the fork was complete */
#define BIRTH_SLACK_NS 1000000000u

/* Gets the start (CLOCK_BOOTTIME) and name of the process that has the pid now. Returns false if there is none. */
static bool start_of(pid_t pid, uint64_t *boot_ns, char name[static PROCESS_LIFE_NAME_BYTES])
{
    return proc_thread(pid, pid, name, PROCESS_LIFE_NAME_BYTES, boot_ns);
}

/* Returns whether the process that has the pid now, and began at boot_ns, is `life`. */
static bool is_same(const struct process_life *life, uint64_t boot_ns)
{
    if (life->boot_ns)
        return life->boot_ns == boot_ns;
    if (!life->began_ns)
        return true;
    uint64_t asleep = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
    int64_t apart = (int64_t)(boot_ns - (life->began_ns + asleep));
    return apart < (int64_t)BIRTH_SLACK_NS && apart > -(int64_t)BIRTH_SLACK_NS;
}

static void add_all(struct vma_history *maps, const struct mapping_list *list, uint64_t time_ns)
{
    vec_each (const struct space_mapping, m, list) {
        if (m->file)
            m->file->refs++;
        vma_history_add(maps, time_ns, m);
    }
}

/*
 * Adds the mappings that were read at `now_ns`: they replace all others from then on, and count as mapped since
 * `since_ns` unless a record after `since_ns` says otherwise. Records after `now_ns` stay in force. If there were
 * several gaps, records between them do not tell what happened in the latest one, so the mappings are added once more
 * as of its start, `late_ns`.
 */
static void take_reading(struct process_life_image *image, const struct mapping_list *list, uint64_t since_ns,
                         uint64_t late_ns, uint64_t now_ns)
{
    add_all(image->maps, list, since_ns);
    if (late_ns > since_ns)
        add_all(image->maps, list, late_ns);
    vma_history_clear(image->maps, now_ns);
    add_all(image->maps, list, now_ns);
    vec_each (const struct space_mapping, m, list)
        if (m->kind == MAPPING_HEAP)
            image->heap = m->start;
    image->complete = image->started = true;
}

int address_spaces_read_life(struct address_spaces *s, struct process_life *life, uint64_t since_ns)
{
    struct mapping_list list = {0};
    char name[PROCESS_LIFE_NAME_BYTES];
    uint64_t now = clock_ns(CLOCK_MONOTONIC), boot = 0, after = 0;
    int bad = -ESRCH;
    s->readings++;
    if (start_of(life->pid, &boot, name) && is_same(life, boot))
        bad = proc_maps_read(life->pid, &s->lives.files, &list);
    if (!bad && (!start_of(life->pid, &after, name) || after != boot))
        bad = -ESRCH;
    /* A process that is about to end has no mappings, as a kernel thread has none. */
    if (!bad && !list.len && !proc_is_kernel(life->pid))
        bad = -ESRCH;
    if (bad) {
        s->readings_failed++;
        proc_maps_release(&s->lives.files, &list);
        return bad;
    }
    take_reading(&life->images.at[life->images.len - 1], &list, since_ns, life->suspect_late_ns, now);
    proc_maps_release(&s->lives.files, &list);
    life->boot_ns = boot;
    life->seen_ns = now;
    if (!life->names.len || life->suspect_ns)
        process_life_rename(life, name, life->names.len ? now : 0, address_spaces_oldest_query_ns(s));
    life->suspect_ns = life->suspect_late_ns = 0;
    return 0;
}

void address_spaces_complete(struct address_spaces *s, struct process_life *life)
{
    struct process_life_image *image = &life->images.at[life->images.len - 1];
    if (life->ended_ns || life->unreadable || (image->complete && !life->suspect_ns))
        return;
    uint64_t since = image->complete ? life->suspect_ns : image->from_ns;
    int bad = address_spaces_read_life(s, life, since);
    if (bad == -ESRCH) { /* the record of the process's end was lost, or is still to come */
        /* The process ended in the gap, but not before it was last known to live, from another CPU or from /proc. */
        uint64_t suspect = life->suspect_ns > life->seen_ns ? life->suspect_ns : life->seen_ns;
        process_history_end(&s->lives, life, life->suspect_ns ? suspect : clock_ns(CLOCK_MONOTONIC));
    }
    life->unreadable = bad && bad != -ETIMEDOUT;
}

bool address_spaces_meet(struct address_spaces *s, uint64_t most_ns)
{
    DIR *proc = opendir("/proc");
    uint64_t until = clock_ns(CLOCK_MONOTONIC) + most_ns, pid;
    const struct dirent *entry = NULL;
    while (proc && clock_ns(CLOCK_MONOTONIC) < until && (entry = readdir(proc))) {
        const char *at = entry->d_name;
        /* The kernel lists processes by pid, so a later call continues behind the last pid. */
        if (!proc_text_number(&at, &pid) || *at || pid > INT32_MAX || pid <= s->met_pid)
            continue;
        s->met_pid = pid;
        struct process_life *life = process_history_latest(&s->lives, (pid_t)pid);
        address_spaces_complete(
            s, life ? life : process_history_begin(&s->lives, (pid_t)pid, 0, vma_history_new(NULL, 0)));
    }
    if (proc)
        closedir(proc);
    return !entry;
}
