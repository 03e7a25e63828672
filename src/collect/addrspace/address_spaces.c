/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/addrspace/address_spaces_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/mem.h"

#define ENDED_MAX   4096
#define BACK_NS     2000000000u
#define STACK_REACH (8ull << 20) /* what a stack may grow to, unless its limit was changed */

struct spaces *spaces_new(struct sideband *band, const struct spaces_options *options)
{
    struct spaces *s = mem_alloc(sizeof(*s));
    s->band = band;
    s->lives.ended_max = options && options->ended_max ? options->ended_max : ENDED_MAX;
    s->back_ns = options && options->back_ns ? options->back_ns : BACK_NS;
    return s;
}

void spaces_free(struct spaces *s)
{
    if (s)
        lives_release(&s->lives);
    free(s);
}

static void take(void *arg, const struct sideband_record *record)
{
    spaces_take(arg, record);
}

void spaces_drain(struct spaces *s)
{
    if (s->band)
        sideband_drain(s->band, take, s);
}

/* One from before we listened; or whose beginning, and the end of the one before, were lost. */
static struct life *meet(struct spaces *s, pid_t pid, uint64_t began_ns)
{
    struct life *life = lives_begin(&s->lives, pid, began_ns, layers_new(NULL, began_ns));
    spaces_complete(s, life);
    return life;
}

static struct life *find_life(struct spaces *s, pid_t pid, uint64_t time_ns)
{
    struct life *life = lives_at(&s->lives, pid, time_ns);
    if (pid <= 0)
        return NULL;
    if (life)
        spaces_complete(s, life);
    else if (!lives_latest(&s->lives, pid))
        life = meet(s, pid, 0);
    if (life && life->ended_ns && life->ended_ns < time_ns && life->ended_ns < s->gap_ns &&
        life == lives_latest(&s->lives, pid))
        life = meet(s, pid, life->ended_ns);
    return life;
}

bool spaces_find(struct spaces *s, pid_t pid, uint64_t time_ns, uint64_t address, struct space_mapping *out)
{
    struct life *life = find_life(s, pid, time_ns);
    struct space_mapping above;
    if (life) {
        const struct layers *maps = life_image_at(life, time_ns)->maps;
        if (layers_find(maps, time_ns, address, out))
            return true;
        if (layers_next(maps, time_ns, address, &above) && above.kind == MAPPING_STACK &&
            above.start - address < STACK_REACH) {
            *out = above;
            return true;
        }
    }
    *out = (struct space_mapping){.kind = MAPPING_NONE};
    return false;
}

/* The memory is new before the registers are: the kernel touches it in the name of whoever called exec. */
static const struct life_image *image_before(const struct life *life, uint64_t time_ns)
{
    const struct life_image *image = life_image_at(life, time_ns);
    return image > life->images.at ? image - 1 : NULL;
}

bool spaces_find_code(struct spaces *s, pid_t pid, uint64_t time_ns, uint64_t address,
                      struct space_mapping *out)
{
    if (spaces_find(s, pid, time_ns, address, out))
        return true;
    struct life *life = find_life(s, pid, time_ns);
    const struct life_image *image = life ? image_before(life, time_ns) : NULL;
    if (image && layers_find(image->maps, time_ns, address, out) && out->protection & PROT_EXEC)
        return true;
    *out = (struct space_mapping){.kind = MAPPING_NONE};
    return false;
}

bool spaces_process(struct spaces *s, pid_t pid, uint64_t time_ns, struct spaces_process *out)
{
    struct life *life = find_life(s, pid, time_ns);
    if (!life || (!life->names.len && life->unreadable && !layers_count(life->images.at[0].maps)))
        return false;
    const struct life_image *image = life_image_at(life, time_ns);
    *out = (struct spaces_process){
        .name = life_name_at(life, time_ns),
        .began_ns = life->began_ns,
        .ended_ns = life->ended_ns,
        .image_ns = image->from_ns,
        .parent_pid = life->parent_pid,
        .complete = image->told && !life->suspect_ns,
    };
    return true;
}

int spaces_reread(struct spaces *s, pid_t pid)
{
    struct life *life = lives_latest(&s->lives, pid);
    if (!life)
        life = lives_begin(&s->lives, pid, 0, layers_new(NULL, 0));
    if (life->ended_ns)
        return -ESRCH;
    const struct life_image *image = &life->images.at[life->images.len - 1];
    return spaces_read_life(s, life, image->told ? s->newest_ns : image->from_ns);
}

struct spaces_counts spaces_counts(const struct spaces *s)
{
    return (struct spaces_counts){
        .living = s->lives.living,
        .ended = s->lives.ended,
        .forgotten = s->lives.forgotten,
        .lost = s->lost,
        .readings = s->readings,
        .readings_failed = s->readings_failed,
    };
}
