/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/addrspace/address_spaces_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/mem.h"

#define ENDED_MAX   4096
#define BACK_NS     2000000000u
#define STACK_REACH (8ull << 20) /* the default limit of a stack (RLIMIT_STACK) */

struct address_spaces *address_spaces_new(struct sideband *band, const struct address_spaces_options *options)
{
    struct address_spaces *s = mem_alloc(sizeof(*s));
    s->band = band;
    s->lives.ended_max = options && options->ended_max ? options->ended_max : ENDED_MAX;
    s->back_ns = options && options->back_ns ? options->back_ns : BACK_NS;
    return s;
}

void address_spaces_free(struct address_spaces *s)
{
    if (s)
        process_history_release(&s->lives);
    free(s);
}

static void take(void *arg, const struct sideband_record *record)
{
    address_spaces_take(arg, record);
}

void address_spaces_drain(struct address_spaces *s)
{
    if (s->band)
        sideband_drain(s->band, take, s);
}

/* Adds a process without a record of its start: it ran before recording began, or the record was lost, with that of the
 * end of the previous process with this pid. */
static struct process_life *meet(struct address_spaces *s, pid_t pid, uint64_t began_ns)
{
    struct process_life *life =
        process_history_begin(&s->lives, pid, began_ns, vma_history_new(NULL, began_ns));
    address_spaces_complete(s, life);
    return life;
}

static struct process_life *find_life(struct address_spaces *s, pid_t pid, uint64_t time_ns)
{
    struct process_life *life = process_history_at(&s->lives, pid, time_ns);
    if (pid <= 0)
        return NULL;
    if (life)
        address_spaces_complete(s, life);
    else if (!process_history_latest(&s->lives, pid))
        life = meet(s, pid, 0);
    if (life && life->ended_ns && life->ended_ns < time_ns && life->ended_ns < s->gap_ns &&
        life == process_history_latest(&s->lives, pid))
        life = meet(s, pid, life->ended_ns);
    return life;
}

bool address_spaces_find(struct address_spaces *s, pid_t pid, uint64_t time_ns, uint64_t address,
                         struct space_mapping *out)
{
    struct process_life *life = find_life(s, pid, time_ns);
    struct space_mapping above;
    if (life) {
        const struct vma_history *maps = process_life_image_at(life, time_ns)->maps;
        if (vma_history_find(maps, time_ns, address, out))
            return true;
        if (vma_history_next(maps, time_ns, address, &above) && above.kind == MAPPING_STACK &&
            above.start - address < STACK_REACH) {
            *out = above;
            return true;
        }
    }
    *out = (struct space_mapping){.kind = MAPPING_NONE};
    return false;
}

/* Returns the image before the one at that time, or NULL. During exec, the address space is replaced before the
 * registers: events of the kernel's work on the new memory have an address in the old program. */
static const struct process_life_image *image_before(const struct process_life *life, uint64_t time_ns)
{
    const struct process_life_image *image = process_life_image_at(life, time_ns);
    return image > life->images.at ? image - 1 : NULL;
}

bool address_spaces_find_code(struct address_spaces *s, pid_t pid, uint64_t time_ns, uint64_t address,
                              struct space_mapping *out)
{
    if (address_spaces_find(s, pid, time_ns, address, out))
        return true;
    struct process_life *life = find_life(s, pid, time_ns);
    const struct process_life_image *image = life ? image_before(life, time_ns) : NULL;
    if (image && vma_history_find(image->maps, time_ns, address, out) && out->protection & PROT_EXEC)
        return true;
    *out = (struct space_mapping){.kind = MAPPING_NONE};
    return false;
}

bool address_spaces_process(struct address_spaces *s, pid_t pid, uint64_t time_ns,
                            struct address_spaces_process *out)
{
    struct process_life *life = find_life(s, pid, time_ns);
    if (!life || (!life->names.len && life->unreadable && !vma_history_count(life->images.at[0].maps)))
        return false;
    const struct process_life_image *image = process_life_image_at(life, time_ns);
    *out = (struct address_spaces_process){
        .name = process_life_name_at(life, time_ns),
        .began_ns = life->began_ns,
        .ended_ns = life->ended_ns,
        .image_ns = image->from_ns,
        .parent_pid = life->parent_pid,
        .complete = image->complete && !life->suspect_ns,
    };
    return true;
}

int address_spaces_reread(struct address_spaces *s, pid_t pid)
{
    struct process_life *life = process_history_latest(&s->lives, pid);
    if (!life)
        life = process_history_begin(&s->lives, pid, 0, vma_history_new(NULL, 0));
    if (life->ended_ns)
        return -ESRCH;
    const struct process_life_image *image = &life->images.at[life->images.len - 1];
    return address_spaces_read_life(s, life, image->complete ? s->newest_ns : image->from_ns);
}

struct address_spaces_counts address_spaces_counts(const struct address_spaces *s)
{
    return (struct address_spaces_counts){
        .living = s->lives.living,
        .ended = s->lives.ended,
        .forgotten = s->lives.forgotten,
        .lost = s->lost,
        .readings = s->readings,
        .readings_failed = s->readings_failed,
    };
}
