/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/formats/chrome_tracks.h"

#include <stdlib.h>

#include "base/hash_map.h"
#include "base/vec.h"
#include "view/events/event_fields.h"

struct track {
    pid_t pid;
    uint32_t thread;
};

struct chrome_tracks {
    struct map by_process, by_thread, by_name;
    struct VEC(pid_t) processes;
    struct VEC(struct track) threads;
    struct VEC(char *) names;
    const struct profile *profile;
};

struct chrome_tracks *chrome_tracks_new(const struct profile *names)
{
    struct chrome_tracks *t = mem_alloc(sizeof(*t));
    t->profile = names;
    return t;
}

void chrome_tracks_free(struct chrome_tracks *t)
{
    if (!t)
        return;
    vec_each (char *, name, &t->names)
        free(*name);
    vec_release(&t->names);
    vec_release(&t->processes);
    vec_release(&t->threads);
    map_release(&t->by_process);
    map_release(&t->by_thread);
    map_release(&t->by_name);
    free(t);
}

void chrome_tracks_add(struct chrome_tracks *t, pid_t pid, uint32_t thread)
{
    bool added;
    map_put_u64(&t->by_thread, (uint64_t)(uint32_t)pid << 32 | thread, 1, &added);
    if (!added)
        return;
    *vec_push(&t->threads) = (struct track){pid, thread};
    map_put_u64(&t->by_process, (uint32_t)pid, 1, &added);
    if (added)
        *vec_push(&t->processes) = pid;
}

static void learn(struct chrome_tracks *t, const struct trace_event *e, uint32_t thread, const char *field)
{
    char text[EVENT_BYTES_MAX + 1];
    const unsigned char *at;
    const struct event_field *f = trace_event_field(e, field, &at);
    if (!f || f->type != EVENT_TEXT)
        return;
    bool added;
    const size_t number = map_put_u64(&t->by_name, thread, t->names.len, &added);
    if (added)
        vec_push(&t->names);
    const char *name = event_fields_text(text, f, at);
    if (!added && !strcmp(t->names.at[number], name))
        return;
    free(t->names.at[number]);
    t->names.at[number] = mem_strdup(name);
}

void chrome_tracks_learn(struct chrome_tracks *t, const struct trace_event *e)
{
    learn(t, e, e->thread, "comm");
    learn(t, e, (uint32_t)trace_event_value(e, "next_tid"), "next_comm");
}

static const char *learned(const struct chrome_tracks *t, uint32_t thread)
{
    const size_t number = map_get_u64(&t->by_name, thread);
    return number == MAP_NONE ? NULL : t->names.at[number];
}

/* The last program that the process has executed. */
static const char *process_name(const struct chrome_tracks *t, pid_t pid)
{
    const char *name = NULL;
    vec_each (const struct profile_image, i, &t->profile->images)
        if (i->pid == pid && *profile_text(t->profile, i->comm))
            name = profile_text(t->profile, i->comm);
    return name ? name : learned(t, (uint32_t)pid);
}

static const char *thread_name(const struct chrome_tracks *t, const struct track *track)
{
    const char *name = learned(t, track->thread);
    vec_each (const struct profile_thread, i, &t->profile->threads)
        if (i->tid == (int32_t)track->thread && t->profile->images.at[i->image].pid == track->pid &&
            *profile_text(t->profile, i->name))
            name = profile_text(t->profile, i->name);
    return name ? name : track->thread == (uint32_t)track->pid ? process_name(t, track->pid) : NULL;
}

static void write_name(struct json *j, const char *record, const struct track *of, const char *name)
{
    if (!name)
        return;
    json_open(j, NULL, '{');
    json_text(j, "ph", "M");
    json_text(j, "name", record);
    json_signed(j, "pid", of->pid);
    json_whole(j, "tid", of->thread);
    json_open(j, "args", '{');
    json_text(j, "name", name);
    json_close(j, '}');
    json_close(j, '}');
}

void chrome_tracks_write(const struct chrome_tracks *t, struct json *j)
{
    vec_each (const pid_t, pid, &t->processes)
        write_name(j, "process_name", &(struct track){*pid, (uint32_t)*pid}, process_name(t, *pid));
    vec_each (const struct track, track, &t->threads)
        write_name(j, "thread_name", track, thread_name(t, track));
}
