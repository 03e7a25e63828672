/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/addrspace/address_spaces_internal.h"

#include <string.h>
#include <sys/mman.h>

#include "collect/addrspace/proc_maps.h"

/* how far behind the program the brk heap may begin: the kernel adds a random offset of up to 1 GiB */
#define HEAP_REACH (2ull << 30)
#define STALE_MIN  16384 /* after this many new mappings, /proc is read again: most must be unmapped by then */

/* Returns the process that a record is about. Adds it if it ran before recording began, or if the record of its start
 * was lost. */
static struct process_life *find_or_make(struct address_spaces *s, pid_t pid, uint64_t time_ns)
{
    struct process_life *life = process_history_latest(&s->lives, pid);
    if (!life)
        return process_history_begin(&s->lives, pid, 0, vma_history_new(NULL, 0));
    if (life->ended_ns && life->ended_ns < s->gap_ns) /* the record of a new process's start was lost */
        return process_history_begin(&s->lives, pid, time_ns, vma_history_new(NULL, time_ns));
    if (life->ended_ns) /* only its main thread had ended */
        process_history_revive(&s->lives, life);
    return life;
}

static struct process_life *life_of(struct address_spaces *s, pid_t pid, uint64_t time_ns)
{
    struct process_life *life = find_or_make(s, pid, time_ns);
    if (time_ns > life->seen_ns)
        life->seen_ns = time_ns;
    return life;
}

/*
 * Returns whether a mapping without a name is the brk heap. The record of the first brk does not have the name
 * "[heap]": the heap is the first private mapping without a name that the program makes a short way behind its own
 * segments. Records of later calls of brk have the name, and cover the whole heap.
 */
static bool is_heap(struct process_life_image *image, const struct sideband_record *r)
{
    if (!image->started || !image->program_end || r->flags & MAP_SHARED || r->text[0])
        return false;
    if (image->heap)
        return r->start == image->heap;
    if (r->start < image->program_end || r->start - image->program_end > HEAP_REACH)
        return false;
    image->heap = r->start;
    return true;
}

/* Finds the start and end of the program: during exec, the kernel maps the program's segments first. The vdso is mapped
 * when exec is nearly done. */
static void note_exec(struct process_life_image *image, const struct sideband_record *r,
                      enum mapping_kind kind)
{
    if (kind == MAPPING_VDSO)
        image->started = true;
    if (image->started || kind == MAPPING_STACK || !image->complete)
        return;
    if (!image->program_end)
        image->program = r->start;
    if (!image->program_end || (r->start >= image->program && r->start <= image->program_end))
        image->program_end = r->end > image->program_end ? r->end : image->program_end;
}

static void take_map(struct address_spaces *s, const struct sideband_record *r)
{
    struct process_life *life = life_of(s, r->pid, r->time_ns);
    struct process_life_image *image = process_life_image_at(life, r->time_ns);
    struct space_mapping m = {.start = r->start,
                              .end = r->end,
                              .page_offset = r->page_offset,
                              .protection = r->protection,
                              .flags = r->flags};
    m.kind = is_heap(image, r) ? MAPPING_HEAP : proc_maps_kind(r->text, r->flags);
    note_exec(image, r, m.kind);
    if (m.kind == MAPPING_HEAP)
        image->heap = r->start;
    if (r->text[0]) {
        struct mapping_file file = {.major = r->major, .minor = r->minor, .inode = r->inode};
        m.file = mapped_files_get(&s->lives.files, r->text, &file);
    }
    vma_history_add(image->maps, r->time_ns, &m);
    if (vma_history_grown(image->maps))
        vma_history_fold(&s->lives.files, image->maps, address_spaces_oldest_query_ns(s));
    if (vma_history_count(image->maps) > life->stale_at + STALE_MIN) {
        address_spaces_read_life(s, life, r->time_ns);
        life->stale_at = vma_history_count(image->maps);
    }
}

static void take_name(struct address_spaces *s, const struct sideband_record *r)
{
    if (r->tid != r->pid && !r->exec)
        return;
    struct process_life *life = life_of(s, r->pid, r->time_ns);
    process_life_rename(life, r->text, r->time_ns, address_spaces_oldest_query_ns(s));
    if (r->exec) {
        process_life_exec(&s->lives, life, r->time_ns, address_spaces_oldest_query_ns(s));
        life->unreadable = false;
    }
}

/* Makes a common layer of the mappings that the process had at that time, and returns a new layer upon it, for its
 * child. */
static struct vma_history *share(struct address_spaces *s, struct process_life_image *image, uint64_t time_ns)
{
    struct vma_history *was = vma_history_shareable(image->maps);
    if (vma_history_grown(was))
        vma_history_fold(&s->lives.files, was, address_spaces_oldest_query_ns(s));
    if (was == image->maps) {
        image->maps = vma_history_new(was, time_ns);
        vma_history_put(&s->lives.files, was); /* the new layer has a reference of its own */
    }
    return vma_history_new(was, time_ns);
}

static void take_fork(struct address_spaces *s, const struct sideband_record *r)
{
    if (r->parent_pid <= 0)
        return;
    struct process_life *parent = life_of(s, r->parent_pid, r->time_ns);
    if (r->pid == r->parent_pid) {
        parent->threads += parent->threads > 0;
        return;
    }
    if (!parent->images.at[parent->images.len - 1].complete)
        address_spaces_complete(s, parent);
    struct process_life_image *had = process_life_image_at(parent, r->time_ns), image = *had;
    image.maps = share(s, had, r->time_ns);
    image.complete &= !parent->suspect_ns;
    struct process_life *child = process_history_begin(&s->lives, r->pid, r->time_ns, image.maps);
    image.from_ns = child->began_ns;
    child->images.at[0] = image;
    child->parent_pid = r->parent_pid;
    child->threads = 1;
    process_life_rename(child, process_life_name_at(parent, r->time_ns), r->time_ns, 0);
}

static void take_exit(struct address_spaces *s, const struct sideband_record *r)
{
    struct process_life *life = process_history_latest(&s->lives, r->pid);
    if (!life || life->ended_ns)
        return;
    if (life->threads)
        life->threads--;
    else if (r->tid != r->pid)
        return;
    if (!life->threads)
        process_history_end(&s->lives, life, r->time_ns);
}

static void take_gap(struct address_spaces *s, const struct sideband_record *r)
{
    s->lost += r->lost;
    if (r->time_ns > s->gap_ns)
        s->gap_ns = r->time_ns;
    vec_each (struct process_life *, latest, &s->lives.latest) {
        struct process_life *life = *latest;
        if (!life || life->ended_ns)
            continue;
        if (!life->suspect_ns || life->suspect_ns > r->since_ns)
            life->suspect_ns = r->since_ns ? r->since_ns : 1;
        if (r->since_ns > life->suspect_late_ns)
            life->suspect_late_ns = r->since_ns;
        life->threads = 0;
        life->unreadable = false;
    }
}

void address_spaces_take(struct address_spaces *s, const struct sideband_record *r)
{
    if (r->type != SIDEBAND_GAP && r->pid <= 0)
        return; /* the task has no pid in our namespace */
    if (r->time_ns > s->newest_ns)
        s->newest_ns = r->time_ns;
    switch (r->type) {
    case SIDEBAND_MAP:
        take_map(s, r);
        break;
    case SIDEBAND_NAME:
        take_name(s, r);
        break;
    case SIDEBAND_FORK:
        take_fork(s, r);
        break;
    case SIDEBAND_EXIT:
        take_exit(s, r);
        break;
    case SIDEBAND_GAP:
        take_gap(s, r);
        break;
    }
}
