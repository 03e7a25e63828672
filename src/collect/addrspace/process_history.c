/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/addrspace/process_history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void free_life(struct process_history *l, struct process_life *life)
{
    vec_each (struct process_life_image, image, &life->images)
        vma_history_put(&l->files, image->maps);
    vec_release(&life->images);
    vec_release(&life->names);
    free(life);
}

void process_history_release(struct process_history *l)
{
    vec_each (struct process_life *, latest, &l->latest)
        for (struct process_life *life = *latest, *before; life; life = before) {
            before = life->before;
            free_life(l, life);
        }
    vec_release(&l->latest);
    map_release(&l->numbers);
    mapped_files_release(&l->files);
}

struct process_life *process_history_latest(const struct process_history *l, pid_t pid)
{
    size_t at = map_get_u64(&l->numbers, (uint64_t)pid);
    return at == MAP_NONE ? NULL : l->latest.at[at];
}

struct process_life *process_history_at(const struct process_history *l, pid_t pid, uint64_t time_ns)
{
    struct process_life *life = process_history_latest(l, pid);
    while (life && life->began_ns > time_ns)
        life = life->before;
    return life;
}

struct process_life *process_history_begin(struct process_history *l, pid_t pid, uint64_t time_ns,
                                           struct vma_history *maps)
{
    struct process_life *life = mem_alloc(sizeof(*life)), *before = process_history_latest(l, pid);
    if (before && !before->ended_ns)
        process_history_end(l, before, time_ns);
    bool added;
    size_t at = map_put_u64(&l->numbers, (uint64_t)pid, l->latest.len, &added);
    if (added)
        vec_push(&l->latest);
    life->before = l->latest.at[at]; /* process_history_end() may have forgotten the one before */
    l->latest.at[at] = life;
    life->pid = pid;
    life->began_ns = time_ns;
    *vec_push(&life->images) = (struct process_life_image){.from_ns = time_ns, .maps = maps};
    l->living++;
    return life;
}

static void unlink_end(struct process_history *l, struct process_life *life)
{
    *(life->older ? &life->older->newer : &l->oldest_end) = life->newer;
    *(life->newer ? &life->newer->older : &l->newest_end) = life->older;
    life->older = life->newer = NULL;
    l->ended--;
}

static void forget(struct process_history *l, struct process_life *life)
{
    struct process_life **at = &l->latest.at[map_get_u64(&l->numbers, (uint64_t)life->pid)];
    while (*at != life)
        at = &(*at)->before;
    *at = life->before;
    unlink_end(l, life);
    free_life(l, life);
    l->forgotten++;
}

void process_history_end(struct process_history *l, struct process_life *life, uint64_t time_ns)
{
    life->ended_ns = time_ns ? time_ns : 1; /* 0 would mean that it lives */
    life->older = l->newest_end;
    *(l->newest_end ? &l->newest_end->newer : &l->oldest_end) = life;
    l->newest_end = life;
    l->ended++;
    l->living--;
    while (l->ended > l->ended_max)
        forget(l, l->oldest_end);
}

void process_history_revive(struct process_history *l, struct process_life *life)
{
    unlink_end(l, life);
    life->ended_ns = 0;
    l->living++;
}

struct process_life_image *process_life_image_at(const struct process_life *life, uint64_t time_ns)
{
    size_t i = life->images.len - 1;
    while (i && life->images.at[i].from_ns > time_ns)
        i--;
    return &life->images.at[i];
}

const char *process_life_name_at(const struct process_life *life, uint64_t time_ns)
{
    size_t i = life->names.len;
    if (!i)
        return "";
    while (--i && life->names.at[i].from_ns > time_ns)
        ;
    return life->names.at[i].text;
}

struct process_life_image *process_life_exec(struct process_history *l, struct process_life *life,
                                             uint64_t time_ns, uint64_t oldest_query_ns)
{
    size_t old = 0;
    while (old + 1 < life->images.len && life->images.at[old + 1].from_ns <= oldest_query_ns)
        vma_history_put(&l->files, life->images.at[old++].maps);
    memmove(life->images.at, life->images.at + old, (life->images.len - old) * sizeof(*life->images.at));
    life->images.len -= old;
    struct process_life_image *image = vec_push(&life->images);
    *image = (struct process_life_image){
        .from_ns = time_ns, .maps = vma_history_new(NULL, time_ns), .complete = true};
    return image;
}

void process_life_rename(struct process_life *life, const char *name, uint64_t time_ns,
                         uint64_t oldest_query_ns)
{
    size_t old = 0;
    while (old + 1 < life->names.len && life->names.at[old + 1].from_ns <= oldest_query_ns)
        old++;
    if (old)
        memmove(life->names.at, life->names.at + old, (life->names.len - old) * sizeof(*life->names.at));
    life->names.len -= old;
    struct process_life_name *n = vec_push(&life->names);
    n->from_ns = time_ns;
    snprintf(n->text, sizeof(n->text), "%s", name);
}
