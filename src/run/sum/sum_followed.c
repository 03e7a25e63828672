/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/sum/sum_followed.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "collect/ledger/ledger_copy.h"
#include "collect/ledger/ledger_dir.h"
#include "collect/trace/ring_image.h"
#include "collect/trace/sum_image.h"
#include "run/sum/call_names.h"

struct sum_followed {
    const char *dir;
    const struct sum_spec *spec;
    struct event_sums *ended; /* of images that have ended */
    struct call_names *names; /* NULL: keys have no calls */
};

/* The names of the calls of one image. */
struct names {
    struct profile *p; /* NULL: its ledger cannot be read */
    struct buf text;
};

struct sum_followed *sum_followed_new(const char *dir, const struct sum_spec *spec,
                                      const struct wrappers *wrappers)
{
    struct sum_followed *f = mem_alloc(sizeof(*f));
    *f = (struct sum_followed){.dir = dir, .spec = spec, .ended = event_sums_new(spec)};
    for (unsigned i = 0; i < spec->n_by; i++)
        if (!strcmp(spec->by[i], "site") && !sum_spec_is_user(spec))
            f->names = call_names_new(dir, wrappers);
    return f;
}

static const char *name_of(void *arg, uint64_t frame)
{
    struct names *n = arg;
    buf_reset(&n->text);
    if (n->p && frame <= n->p->locations.len)
        call_names_add_location(n->p, (uint32_t)(frame - 1), &n->text);
    return n->text.len ? buf_str(&n->text) : NULL;
}

static void add(struct sum_followed *f, const struct sum_image *i, struct event_sums *to)
{
    struct names names = {.p = f->names ? call_names_profile(f->names, i->pid, i->id) : NULL,
                          .text = BUF_INIT};
    sum_image_add(i, f->spec, to, name_of, &names);
    profile_free(names.p);
    buf_release(&names.text);
}

static void remove_file(const struct sum_followed *f, const struct ring_image *i, const char *suffix)
{
    struct buf path = BUF_INIT;
    buf_printf(&path, "%s/", f->dir);
    ring_image_add_name(&path, i, suffix);
    unlink(buf_str(&path));
    buf_release(&path);
}

/* Takes the sums of images that have ended, and adds those of images that run to `running`; NULL: not these. */
static void each_image(struct sum_followed *f, struct event_sums *running)
{
    static const char *const suffixes[] = {LEDGER_SUMS_SUFFIX, LEDGER_EVENTS_SUFFIX, LEDGER_SUFFIX,
                                           LEDGER_TAGS_SUFFIX, LEDGER_CONTROL_SUFFIX};
    DIR *d = opendir(f->dir);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        struct ring_image of = {.lock = -1};
        struct sum_image i;
        if (!sum_image_name(entry->d_name, &of.pid, &of.id))
            continue;
        const bool ended = ring_image_has_ended(&of, f->dir);
        if ((ended || running) && !sum_image_open(&i, f->dir, entry->d_name)) {
            add(f, &i, ended ? f->ended : running);
            sum_image_close(&i);
        }
        for (size_t k = 0; ended && k < sizeof(suffixes) / sizeof(*suffixes); k++)
            remove_file(f, &of, suffixes[k]);
    }
    if (d)
        closedir(d);
}

void sum_followed_harvest(struct sum_followed *f)
{
    each_image(f, NULL);
}

struct event_sums *sum_followed_read(struct sum_followed *f)
{
    struct event_sums *all = event_sums_new(f->spec);
    each_image(f, all);
    event_sums_add_all(all, f->ended);
    return all;
}

/* Images that have summed nothing have ledgers only. */
static void remove_ledgers(const struct sum_followed *f)
{
    struct ledger_list list = {0};
    ledger_dir_scan(f->dir, &list);
    vec_each (const struct ledger_entry, entry, &list)
        if (!entry->alive && entry->path)
            ledger_remove(entry->path);
    ledger_list_release(&list);
}

void sum_followed_free(struct sum_followed *f)
{
    if (!f)
        return;
    sum_followed_harvest(f);
    remove_ledgers(f);
    event_sums_free(f->ended);
    call_names_free(f->names);
    free(f);
}
