/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring_count DIR [follow]: counts what the rings in a folder of ledgers have, and prints a line of JSON for each image.
 * With `follow` it reads them, and tells the targets how far it is, until its standard input ends.
 */
#include <dirent.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/trace/ring_image.h"
#include "wire/event_schema.h"

#define IMAGES_MOST 4096
#define RINGS_MOST  600

struct counted {
    struct ring_image image;
    uint64_t events, life, shared, overwritten, torn, back, bad, marked, first, newest, last[RINGS_MOST];
};

static struct counted *images[IMAGES_MOST];
static unsigned n_images;

static void find(const char *folder)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) && n_images < IMAGES_MOST;) {
        pid_t pid;
        uint64_t id;
        bool known = !ring_image_name(e->d_name, &pid, &id);
        for (unsigned k = 0; k < n_images && !known; k++)
            known = images[k]->image.id == id;
        struct counted *c = known ? NULL : calloc(1, sizeof(*c));
        if (c && !ring_image_open(&c->image, folder, e->d_name)) {
            images[n_images++] = c;
        } else {
            free(c);
        }
    }
    if (d)
        closedir(d);
}

static bool is_whole(const struct ring_event *e)
{
#define FIELD(name, type)                     +1
#define EVENT(number, constant, name, fields) [number] = 2 fields,
#define TEXT(name, bytes)                     +(bytes) / 8
#define LIFE(number, name, fields)            [number] = 2 fields,
    static const uint16_t words[] = {EVENT_SCHEMA(EVENT, FIELD) EVENT_SCHEMA_LIFE(LIFE, FIELD, TEXT)};
#undef LIFE
#undef TEXT
#undef EVENT
#undef FIELD
    const uint64_t *w = (const uint64_t *)e;
    return e->id < sizeof(words) / sizeof(*words) && words[e->id] &&
           (e->size & RING_SIZE_MASK) == words[e->id] &&
           (event_id_is_life(e->id) ||
            (w[2] < UINT64_C(1) << 47 && (words[e->id] == 3 || w[3] < UINT64_C(1) << 63)));
}

static void take(struct counted *c, uint32_t ring, const struct ring_piece *p)
{
    const struct ring_event *e;
    uint32_t at = 0, n = 0;
    bool bad;
    for (; (e = ring_piece_event(p, &at, &bad)); n++) {
        c->torn += !is_whole(e);
        c->back += e->ticks < c->last[ring];
        c->last[ring] = e->ticks;
        c->first = !c->first || e->ticks < c->first ? e->ticks : c->first;
        c->newest = e->ticks > c->newest ? e->ticks : c->newest;
        c->life += event_id_is_life(e->id) != 0;
        c->marked += event_id_plain(e->id) == EVENT_malloc && ((const uint64_t *)e)[3] == 48;
    }
    c->torn += bad || n != p->n_events;
    c->events += n;
    c->shared += ring == ring_reader_rings(c->image.reader) - 1 ? n : 0;
    c->overwritten += p->overwritten;
}

static void read_all(void)
{
    struct ring_piece p;
    for (unsigned k = 0; k < n_images; k++)
        for (uint32_t ring = 0; ring < ring_reader_rings(images[k]->image.reader); ring++)
            for (int found; images[k]->bad < 1000 && (found = ring_image_next(&images[k]->image, ring, &p));)
                if (found > 0)
                    take(images[k], ring, &p);
                else
                    images[k]->bad++;
}

static void print_anchors(const struct counted *c)
{
    struct ring_anchor anchors[RING_ANCHORS];
    const uint32_t n = ring_reader_anchors(c->image.reader, anchors);
    printf(", \"first\": %" PRIu64 ", \"last\": %" PRIu64 ", \"anchors\": [", c->first, c->newest);
    for (uint32_t k = 0; k < n; k++)
        printf("%s[%" PRIu64 ", %" PRIu64 ", %" PRIu64 "]", k ? ", " : "", anchors[k].ticks, anchors[k].ns,
               anchors[k].width_ticks);
    printf("]");
}

static void print(const struct counted *c)
{
    const struct ring_header *h = c->image.map; /* as it is now */
    printf("{\"pid\": %d, \"id\": \"%016" PRIx64 "\", \"events\": %" PRIu64 ", \"life\": %" PRIu64
           ", \"shared\": %" PRIu64 ", \"overwritten\": %" PRIu64 ", \"torn\": %" PRIu64
           ", \"back\": %" PRIu64 ", \"bad\": %" PRIu64 ", \"marked\": %" PRIu64 ", \"aborted\": %" PRIu64
           ", \"lost\": [",
           (int)c->image.pid, c->image.id, c->events, c->life, c->shared, c->overwritten, c->torn, c->back,
           c->bad, c->marked, h->aborted);
    for (int why = 0; why < RING_LOSSES; why++) {
        uint64_t lost = 0;
        for (uint32_t ring = 0; ring < ring_reader_rings(c->image.reader); ring++)
            lost += ring_reader_lost(c->image.reader, ring, (enum ring_loss)why);
        printf("%s%" PRIu64, why ? ", " : "", lost);
    }
    printf("], \"parent_pid\": %d, \"parent_id\": \"%016" PRIx64 "\", \"began\": %" PRIu64
           ", \"forked\": %" PRIu64,
           h->parent_pid, h->parent_image_id, h->began_ticks, h->forked_ticks);
    print_anchors(c);
    printf(", \"cpus\": %u, \"ring_bytes\": %" PRIu64 ", \"overwrites\": %u, \"clock\": %u}\n", h->cpus,
           h->ring_bytes, h->overwrites, h->clock);
}

int main(int argc, char **argv)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};
    if (argc < 2)
        return 2;
    while (argc > 2 && poll(&input, 1, 1) == 0) {
        find(argv[1]);
        read_all();
    }
    find(argv[1]);
    read_all();
    for (unsigned k = 0; k < n_images; k++)
        ring_reader_end(images[k]->image.reader);
    read_all();
    for (unsigned k = 0; k < n_images; k++)
        print(images[k]);
    return 0;
}
