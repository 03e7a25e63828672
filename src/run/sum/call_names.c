/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/sum/call_names.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "collect/ledger/ledger_copy.h"
#include "collect/ledger/ledger_folder.h"
#include "collect/ledger/ledger_profile.h"
#include "collect/ledger/profile_names.h"
#include "collect/trace/ring_image.h"
#include "collect/trace/trace_sites.h"
#include "model/trace/event_sums.h"

/* The calls of an image. */
struct named_image {
    pid_t pid;
    uint64_t id;
    struct profile *p; /* NULL: its ledger cannot be read */
    struct trace_sites *sites;
};

struct call_names {
    const char *dir;
    const struct wrappers *wrappers;
    struct symbols *symbols; /* NULL: not yet */
    struct VEC(struct named_image) images;
};

struct call_names *call_names_new(const char *dir, const struct wrappers *wrappers)
{
    struct call_names *n = mem_alloc(sizeof(*n));
    *n = (struct call_names){.dir = dir, .wrappers = wrappers};
    return n;
}

void call_names_begin(struct call_names *n)
{
    vec_each (const struct named_image, i, &n->images) {
        trace_sites_free(i->sites);
        profile_free(i->p);
    }
    n->images.len = 0;
}

void call_names_free(struct call_names *n)
{
    if (!n)
        return;
    call_names_begin(n);
    vec_release(&n->images);
    symbols_free(n->symbols);
    free(n);
}

static struct profile *read_profile(const struct call_names *n, pid_t pid, uint64_t image_id)
{
    struct buf path = BUF_INIT;
    struct ledger_copy copy;
    struct profile *p = NULL;
    buf_printf(&path, "%s/", n->dir);
    ring_image_add_name(&path, &(struct ring_image){.pid = pid, .id = image_id}, LEDGER_SUFFIX);
    const int fd = ledger_file_open(buf_str(&path), O_RDONLY);
    buf_release(&path);
    if (fd < 0)
        return NULL;
    if (!ledger_copy_read(fd, &copy, NULL)) {
        p = ledger_profile(&copy);
        ledger_copy_release(&copy);
    }
    close(fd);
    return p;
}

static void give_names(struct call_names *n, struct profile *p)
{
    if (!n->symbols) {
        char *cache = profile_names_cache_dir();
        n->symbols = symbols_new(cache);
        free(cache);
    }
    profile_names_apply(n->symbols, p, "");
    wrappers_mark(n->wrappers, p);
}

struct profile *call_names_profile(struct call_names *n, pid_t pid, uint64_t image_id)
{
    struct profile *p = read_profile(n, pid, image_id);
    if (p)
        give_names(n, p);
    return p;
}

void call_names_add_location(const struct profile *p, uint32_t location, struct buf *b)
{
    const struct profile_location *l = &p->locations.at[location];
    const struct profile_line *line = NULL;
    for (uint32_t i = 0; i < l->n_lines; i++) {
        line = &p->lines.at[l->first_line + i];
        if (!line->wrapper)
            break;
    }
    event_sums_add_site(b, line ? profile_text(p, line->function) : NULL,
                        line ? profile_text(p, line->file) : NULL, line ? line->line : 0,
                        l->module == PROFILE_NONE ? NULL : profile_text(p, p->modules.at[l->module].path),
                        l->address);
}

/* trace_sites.h looks for modules where recordings have them. */
static void add_mappings(struct profile *p)
{
    for (uint32_t i = 0; i < p->modules.len; i++)
        *vec_push(&p->mappings) = (struct profile_mapping){
            .module = i, .start = p->modules.at[i].start, .bias = p->modules.at[i].bias};
}

static size_t image_of(struct call_names *n, pid_t pid, uint64_t image_id)
{
    for (size_t i = 0; i < n->images.len; i++)
        if (n->images.at[i].pid == pid && n->images.at[i].id == image_id)
            return i;
    struct named_image *image = vec_push(&n->images);
    *image = (struct named_image){.pid = pid, .id = image_id, .p = read_profile(n, pid, image_id)};
    if (image->p) {
        add_mappings(image->p);
        image->sites = trace_sites_new(image->p);
    }
    return n->images.len - 1;
}

struct call_name_place call_names_find(struct call_names *n, pid_t pid, uint64_t image_id,
                                       uint64_t return_address, const struct trace_event *told)
{
    const size_t at = image_of(n, pid, image_id);
    const struct named_image *image = &n->images.at[at];
    if (!image->p)
        return (struct call_name_place){.image = SIZE_MAX};
    if (told)
        trace_sites_take(image->sites, told);
    const uint32_t number = trace_sites_image(
        image->sites, &(struct trace_event){.pid = pid, .image_id = image_id, .domain = "ust"});
    return (struct call_name_place){at, trace_sites_location(image->sites, number, return_address)};
}

void call_names_read(struct call_names *n)
{
    vec_each (const struct named_image, i, &n->images)
        if (i->p)
            give_names(n, i->p);
}

void call_names_add(const struct call_names *n, const struct call_name_place *place, struct buf *b)
{
    if (place->image != SIZE_MAX)
        call_names_add_location(n->images.at[place->image].p, place->location, b);
}
