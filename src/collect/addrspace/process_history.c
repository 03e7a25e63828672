/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/addrspace/process_history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void free_life(struct lives *l, struct life *life)
{
    vec_each (struct life_image, image, &life->images)
        layers_put(&l->files, image->maps);
    vec_release(&life->images);
    vec_release(&life->names);
    free(life);
}

void lives_release(struct lives *l)
{
    vec_each (struct life *, latest, &l->latest)
        for (struct life *life = *latest, *before; life; life = before) {
            before = life->before;
            free_life(l, life);
        }
    vec_release(&l->latest);
    map_release(&l->numbers);
    mapping_files_release(&l->files);
}

struct life *lives_latest(const struct lives *l, pid_t pid)
{
    size_t at = map_get_u64(&l->numbers, (uint64_t)pid);
    return at == MAP_NONE ? NULL : l->latest.at[at];
}

struct life *lives_at(const struct lives *l, pid_t pid, uint64_t time_ns)
{
    struct life *life = lives_latest(l, pid);
    while (life && life->began_ns > time_ns)
        life = life->before;
    return life;
}

struct life *lives_begin(struct lives *l, pid_t pid, uint64_t time_ns, struct layers *maps)
{
    struct life *life = mem_alloc(sizeof(*life)), *before = lives_latest(l, pid);
    if (before && !before->ended_ns)
        lives_end(l, before, time_ns);
    bool added;
    size_t at = map_put_u64(&l->numbers, (uint64_t)pid, l->latest.len, &added);
    if (added)
        vec_push(&l->latest);
    life->before = l->latest.at[at]; /* lives_end() may have forgotten the one before */
    l->latest.at[at] = life;
    life->pid = pid;
    life->began_ns = time_ns;
    *vec_push(&life->images) = (struct life_image){.from_ns = time_ns, .maps = maps};
    l->living++;
    return life;
}

static void unlink_end(struct lives *l, struct life *life)
{
    *(life->older ? &life->older->newer : &l->oldest_end) = life->newer;
    *(life->newer ? &life->newer->older : &l->newest_end) = life->older;
    life->older = life->newer = NULL;
    l->ended--;
}

static void forget(struct lives *l, struct life *life)
{
    struct life **at = &l->latest.at[map_get_u64(&l->numbers, (uint64_t)life->pid)];
    while (*at != life)
        at = &(*at)->before;
    *at = life->before;
    unlink_end(l, life);
    free_life(l, life);
    l->forgotten++;
}

void lives_end(struct lives *l, struct life *life, uint64_t time_ns)
{
    life->ended_ns = time_ns ? time_ns : 1; /* 0: lives */
    life->older = l->newest_end;
    *(l->newest_end ? &l->newest_end->newer : &l->oldest_end) = life;
    l->newest_end = life;
    l->ended++;
    l->living--;
    while (l->ended > l->ended_max)
        forget(l, l->oldest_end);
}

void lives_revive(struct lives *l, struct life *life)
{
    unlink_end(l, life);
    life->ended_ns = 0;
    l->living++;
}

struct life_image *life_image_at(const struct life *life, uint64_t time_ns)
{
    size_t i = life->images.len - 1;
    while (i && life->images.at[i].from_ns > time_ns)
        i--;
    return &life->images.at[i];
}

const char *life_name_at(const struct life *life, uint64_t time_ns)
{
    size_t i = life->names.len;
    if (!i)
        return "";
    while (--i && life->names.at[i].from_ns > time_ns)
        ;
    return life->names.at[i].text;
}

struct life_image *life_exec(struct lives *l, struct life *life, uint64_t time_ns, uint64_t settled_ns)
{
    size_t old = 0;
    while (old + 1 < life->images.len && life->images.at[old + 1].from_ns <= settled_ns)
        layers_put(&l->files, life->images.at[old++].maps);
    memmove(life->images.at, life->images.at + old, (life->images.len - old) * sizeof(*life->images.at));
    life->images.len -= old;
    struct life_image *image = vec_push(&life->images);
    *image = (struct life_image){.from_ns = time_ns, .maps = layers_new(NULL, time_ns), .told = true};
    return image;
}

void life_rename(struct life *life, const char *name, uint64_t time_ns, uint64_t settled_ns)
{
    size_t old = 0;
    while (old + 1 < life->names.len && life->names.at[old + 1].from_ns <= settled_ns)
        old++;
    if (old)
        memmove(life->names.at, life->names.at + old, (life->names.len - old) * sizeof(*life->names.at));
    life->names.len -= old;
    struct life_name *n = vec_push(&life->names);
    n->from_ns = time_ns;
    snprintf(n->text, sizeof(n->text), "%s", name);
}
