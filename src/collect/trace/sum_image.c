/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/sum_image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file_map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/ledger/ledger_folder.h"
#include "collect/trace/agent_events.h"
#include "collect/trace/event_description.h"
#include "collect/trace/user_classes.h"
#include "wire/event_schema.h"
#include "wire/ledger.h"

#define TEXT_BYTES 256u

bool sum_image_name(const char *name, pid_t *pid, uint64_t *id)
{
    int number, end = 0;
    if (sscanf(name, "%d-%16" SCNx64 "%n", &number, id, &end) != 2 ||
        strcmp(name + end, LEDGER_SUMS_SUFFIX) != 0)
        return false;
    *pid = number;
    return true;
}

int sum_image_open(struct sum_image *i, const char *dir, const char *name)
{
    struct buf path = BUF_INIT;
    struct stat st;
    *i = (struct sum_image){.dir = dir};
    if (!sum_image_name(name, &i->pid, &i->id))
        return -EINVAL;
    buf_printf(&path, "%s/%s", dir, name);
    const int fd = ledger_file_open(buf_str(&path), O_RDONLY);
    buf_release(&path);
    if (fd < 0)
        return fd;
    void *map = NULL;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0)
        map = file_map_open(fd, (size_t)st.st_size, PROT_READ);
    close(fd);
    if (!map)
        return -EAGAIN;
    i->map = map;
    i->bytes = (size_t)st.st_size;
    if (sum_reader_begin(&i->reader, map, i->bytes))
        return 0;
    sum_image_close(i);
    return -EAGAIN;
}

void sum_image_close(struct sum_image *i)
{
    file_map_close(i->map, i->bytes);
    i->map = NULL;
}

/* One reading of an image. */
struct reading {
    const struct sum_image *i;
    const struct sum_spec *spec;
    struct user_events *user;
    struct VEC(struct event_class *) classes; /* of the program's events */
    sum_image_site_fn *site;
    void *arg;
    char texts[SUM_SPEC_BY_MAX][TEXT_BYTES];
};

static const struct event_class *user_class(struct reading *r, uint16_t number)
{
    struct event_class class;
    vec_each (struct event_class *, c, &r->classes)
        if ((*c)->id == number)
            return *c;
    if (user_events_describe(r->user, number, &class))
        return NULL;
    struct event_class *c = mem_alloc(sizeof(*c));
    *c = class;
    return *vec_push(&r->classes) = c;
}

static const struct event_class *class_of(struct reading *r, uint16_t number)
{
    uint32_t n;
    const struct event_class *agent = agent_events(&n);
    if (number >= EVENT_ID_OWN)
        return user_class(r, number);
    for (uint32_t k = 0; k < n; k++)
        if (agent[k].id == number)
            return &agent[k];
    return NULL;
}

static struct event_sums_value site_at(struct reading *r, uint64_t address, uint64_t frame,
                                       char text[TEXT_BYTES])
{
    const char *name = r->site && frame ? r->site(r->arg, frame) : NULL;
    if (name)
        snprintf(text, TEXT_BYTES, "%s", name);
    else
        snprintf(text, TEXT_BYTES, "0x%" PRIx64, address);
    return (struct event_sums_value){.kind = EVENT_SUMS_TEXT, .text = text};
}

static struct event_sums_value text_at(const uint64_t *words, uint32_t n_words, bool cut,
                                       char text[TEXT_BYTES])
{
    const int length = (int)strnlen((const char *)words, 8 * n_words);
    snprintf(text, TEXT_BYTES, "%.*s%s", length, (const char *)words, cut ? "…" : "");
    return (struct event_sums_value){.kind = EVENT_SUMS_TEXT, .text = text};
}

/* Returns the value of a field that events of all classes have. */
static struct event_sums_value common_at(const struct reading *r, const struct event_class *c,
                                         const char *name, uint64_t word)
{
    if (!strcmp(name, "event"))
        return (struct event_sums_value){.kind = EVENT_SUMS_TEXT, .text = trace_event_name(c)};
    if (!strcmp(name, "pid"))
        return (struct event_sums_value){.kind = EVENT_SUMS_WHOLE, .bits = (uint32_t)r->i->pid};
    if (!strcmp(name, "thread") || !strcmp(name, "cpu"))
        return (struct event_sums_value){.kind = EVENT_SUMS_WHOLE, .bits = word};
    return (struct event_sums_value){.kind = EVENT_SUMS_ABSENT};
}

static void read_key(struct reading *r, const struct event_class *c, const struct sum_key *key,
                     struct event_sums_key *out)
{
    uint32_t at = 1, unused;
    for (unsigned k = 0; k < r->spec->n_by && at < SUM_KEY_WORDS; k++) {
        const struct event_field *f = trace_event_class_field(c, r->spec->by[k], &unused);
        const uint32_t left = SUM_KEY_WORDS - at, words = left < SUM_TEXT_WORDS ? left : SUM_TEXT_WORDS;
        char *text = r->texts[k];
        if (!f)
            out->by[k] = common_at(r, c, r->spec->by[k], key->words[at]);
        else if (f->type == EVENT_TEXT)
            out->by[k] = text_at(key->words + at, words, key->words[0] & SUM_CUT(k), text);
        else if (c->id < EVENT_ID_OWN && !strcmp(f->name, "site"))
            out->by[k] = site_at(r, key->words[at] & ~SUM_ASIDE, key->frame, text);
        else
            out->by[k] = event_sums_value_of_number(f, key->words[at], text, TEXT_BYTES);
        at += f && f->type == EVENT_TEXT ? words : 1;
    }
}

static void add_row(struct reading *r, uint32_t row, struct event_sums *to)
{
    struct sum_key key;
    struct sum_cells cells;
    struct event_sums_key out = {.others = !row};
    uint64_t bits;
    bool bytes;
    if (!sum_reader_row(&r->i->reader, row, &key, &cells))
        return;
    const struct event_class *c = row ? class_of(r, (uint16_t)key.words[0]) : NULL;
    if (!c) {
        const bool is_size = !sum_spec_is_user(r->spec);
        out.others = true;
        event_sums_add(to, &out, &cells, r->i->reader.type, is_size);
        return;
    }
    const struct trace_event event = {.class = c, .pid = r->i->pid};
    const enum sum_type type = event_sums_number_of(r->spec, &event, &bits, &bytes);
    read_key(r, c, &key, &out);
    event_sums_add(to, &out, &cells, type, bytes);
}

void sum_image_add(const struct sum_image *i, const struct sum_spec *spec, struct event_sums *to,
                   sum_image_site_fn *site, void *arg)
{
    struct reading *r = mem_alloc(sizeof(*r));
    *r = (struct reading){.i = i, .spec = spec, .site = site, .arg = arg};
    r->user = user_events_new(i->dir, i->pid, i->id);
    const uint32_t rows = sum_reader_rows(&i->reader);
    for (uint32_t row = 0; row < rows; row++)
        add_row(r, row, to);
    event_sums_note_early(to, sum_reader_early(&i->reader));
    vec_each (struct event_class *, c, &r->classes) {
        event_description_release(*c);
        free(*c);
    }
    vec_release(&r->classes);
    user_events_free(r->user);
    free(r);
}
