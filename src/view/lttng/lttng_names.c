/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/lttng/lttng_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash_map.h"
#include "base/vec.h"

#define NAME_BYTES 16

struct name {
    char text[NAME_BYTES];
};

struct lttng_names {
    const struct profile *p;
    struct map images;  /* by image id: its index in the profile */
    struct map threads; /* by index of the image and thread id: the index of the thread in the profile */
    struct map known;   /* by thread id: the index in `names` */
    struct VEC(struct name) names;
};

static void set_name(struct lttng_names *n, uint32_t thread, const char *name)
{
    bool added;
    const size_t at = map_put_u64(&n->known, thread, n->names.len, &added);
    struct name *to = added ? vec_push(&n->names) : &n->names.at[at];
    snprintf(to->text, sizeof(to->text), "%s", name);
}

struct lttng_names *lttng_names_new(const struct profile *p)
{
    struct lttng_names *n = mem_alloc(sizeof(*n));
    n->p = p;
    for (uint32_t i = 0; i < p->images.len; i++) {
        const struct profile_image *image = &p->images.at[i];
        map_put_u64(&n->images, image->id, i, NULL);
        set_name(n, (uint32_t)image->pid, profile_text(p, image->comm));
    }
    for (uint32_t i = 0; i < p->threads.len; i++) {
        const struct profile_thread *t = &p->threads.at[i];
        const char *name = profile_text(p, t->name);
        map_put_u64(&n->threads, (uint64_t)t->image << 32 | (uint32_t)t->tid, i, NULL);
        set_name(n, (uint32_t)t->tid, *name ? name : profile_text(p, p->images.at[t->image].comm));
    }
    return n;
}

void lttng_names_free(struct lttng_names *n)
{
    if (!n)
        return;
    map_release(&n->images);
    map_release(&n->threads);
    map_release(&n->known);
    vec_release(&n->names);
    free(n);
}

/* The field `name` has the name of the thread; NULL: there is no such field. */
static void learn(struct lttng_names *n, const struct trace_event *e, uint32_t thread, const char *name)
{
    const unsigned char *at;
    char text[NAME_BYTES];
    const struct event_field *f = trace_event_field(e, name, &at);
    if (!f || f->type != EVENT_TEXT)
        return;
    snprintf(text, sizeof(text), "%.*s", (int)f->bytes, (const char *)at);
    set_name(n, thread, text);
}

void lttng_names_learn(struct lttng_names *n, const struct trace_event *e)
{
    const unsigned char *at;
    if (strcmp(e->domain, "kernel"))
        return;
    learn(n, e, e->thread, "comm");
    const struct event_field *next = trace_event_field(e, "next_tid", &at);
    if (next)
        learn(n, e, (uint32_t)trace_event_number(next, at), "next_comm");
}

const char *lttng_names_of(const struct lttng_names *n, const struct trace_event *e)
{
    const size_t image = e->image_id ? map_get_u64(&n->images, e->image_id) : MAP_NONE;
    if (image != MAP_NONE) {
        const size_t thread = map_get_u64(&n->threads, (uint64_t)image << 32 | e->thread);
        const char *name = thread == MAP_NONE ? "" : profile_text(n->p, n->p->threads.at[thread].name);
        return *name ? name : profile_text(n->p, n->p->images.at[image].comm);
    }
    const size_t known = map_get_u64(&n->known, e->thread);
    return known == MAP_NONE ? "" : n->names.at[known].text;
}
