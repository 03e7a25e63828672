/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/ctf_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"
#include "collect/trace/ctf_metadata.h"
#include "collect/trace/cut_packet.h"

struct ctf_writer {
    int folder;
    struct ctf_clocks told; /* the last one in the metadata */
    struct ctf_trace trace;
};

static int append(const struct ctf_writer *w, const struct buf *b, int flags, struct error *e)
{
    const int fd = openat(w->folder, "metadata", O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
    struct stat before = {.st_size = 0};
    const ssize_t n = fd < 0 || fstat(fd, &before) ? -1 : write(fd, b->data, b->len);
    const int code = n == (ssize_t)b->len ? 0 : n < 0 ? errno : ENOSPC;
    const int bad =
        code ? error_set(e, code, "cannot write the metadata of the trace: %s", strerror(code)) : 0;
    if (n > 0 && code && ftruncate(fd, before.st_size)) /* a half of a class would spoil all */
        error_set(e, errno, "cannot take back a part of the metadata: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return bad;
}

#define OFFSET_TRIES 16

/* Returns CLOCK_REALTIME - CLOCK_MONOTONIC, from the two readings with the least time between them. */
static uint64_t read_offset(void)
{
    uint64_t offset = 0, least = UINT64_MAX;
    for (int k = 0; k < OFFSET_TRIES; k++) {
        const uint64_t before = clock_ns(CLOCK_MONOTONIC), wall = clock_ns(CLOCK_REALTIME),
                       width = clock_ns(CLOCK_MONOTONIC) - before;
        if (width < least) {
            least = width;
            offset = wall - before - width / 2;
        }
    }
    return offset;
}

/* One for all folders that this process writes: two readings of both clocks would differ, and with them the order of
 * events that a reader merges. */
static uint64_t clock_offset(void)
{
    static uint64_t offset;
    uint64_t none = 0;
    if (!__atomic_load_n(&offset, __ATOMIC_RELAXED))
        __atomic_compare_exchange_n(&offset, &none, read_offset(), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return __atomic_load_n(&offset, __ATOMIC_RELAXED);
}

int64_t ctf_writer_clock_step_ns(void)
{
    const int64_t step_ns = (int64_t)(read_offset() - clock_offset());
    return llabs(step_ns) < CTF_STEP_LEAST_NS ? 0 : step_ns;
}

int ctf_writer_new(struct ctf_writer **out, const char *folder, const char *domain,
                   const struct event_class *classes, uint32_t n, struct error *e)
{
    return ctf_writer_new_for(out, folder, &(struct ctf_about){.domain = domain}, classes, n, e);
}

int ctf_writer_new_for(struct ctf_writer **out, const char *folder, const struct ctf_about *about,
                       const struct event_class *classes, uint32_t n, struct error *e)
{
    struct ctf_writer *w = *out = mem_alloc(sizeof(*w));
    struct buf b = BUF_INIT;
    w->folder = -1;
    w->trace.where = about->where;
    w->trace.clock = about->clock;
    w->told.offset_ns = w->trace.offset_ns = clock_offset();
    snprintf(w->trace.domain, sizeof(w->trace.domain), "%s", about->domain);
    if (getrandom(w->trace.uuid, sizeof(w->trace.uuid), 0) < 0 || (mkdir(folder, 0700) && errno != EEXIST) ||
        (w->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return error_set(e, errno, "cannot make the folder %s: %s", folder, strerror(errno));
    ctf_metadata_begin(&b, &w->trace);
    for (uint32_t i = 0; i < n; i++) {
        ctf_metadata_class(&b, &classes[i]);
        *vec_push(&w->trace.classes) = classes[i];
    }
    const int bad = append(w, &b, O_TRUNC, e);
    buf_release(&b);
    return bad;
}

int ctf_writer_class(struct ctf_writer *w, const struct event_class *class, struct error *e)
{
    struct buf b = BUF_INIT;
    ctf_metadata_class(&b, class);
    *vec_push(&w->trace.classes) = *class;
    const int bad = append(w, &b, O_APPEND, e);
    buf_release(&b);
    return bad;
}

void ctf_writer_clocks(struct ctf_writer *w, double residual_ns, bool last)
{
    struct buf b = BUF_INIT;
    struct error ignored;
    if (!w)
        return;
    const struct ctf_clocks now = {.time_ns = clock_ns(CLOCK_MONOTONIC),
                                   .offset_ns = read_offset(),
                                   .residual_ns = (uint64_t)ceil(residual_ns)};
    const bool stepped = llabs((int64_t)(now.offset_ns - w->told.offset_ns)) >= CTF_STEP_LEAST_NS;
    const bool worse = now.residual_ns > TICK_CLOCK_BOUND_NS && now.residual_ns > w->told.residual_ns;
    if (!stepped && !worse && !last)
        return;
    ctf_metadata_clocks(&b, &now);
    append(w, &b, O_APPEND, &ignored);
    buf_release(&b);
    w->told = now;
}

void ctf_writer_free(struct ctf_writer *w)
{
    if (!w)
        return;
    if (w->folder >= 0)
        close(w->folder);
    ctf_trace_release(&w->trace);
    free(w);
}

int ctf_writer_stream(struct ctf_writer *w, pid_t pid, uint64_t image_id, uint32_t cpu, struct error *e)
{
    char name[64];
    snprintf(name, sizeof(name), "events_%d-%016" PRIx64 "_%u", (int)pid, image_id, cpu);
    int fd = openat(w->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set(e, errno, "cannot write %s: %s", name, strerror(errno));
    cut_packet_lock(fd);
    return fd;
}

/* Returns how many bytes of an event's last word are behind its last field. */
static uint64_t padding(const struct ctf_writer *w, const struct ring_event *e)
{
    vec_each (const struct event_class, c, &w->trace.classes)
        if (c->id == e->id)
            return -(uint64_t)event_class_bytes(c) % 8;
    return 0;
}

/* A write that stops halfway has met a full disk, or the largest size of a file. */
static int append_packet(int stream, const struct iovec parts[2], ssize_t wanted)
{
    const ssize_t done = writev(stream, parts, 2);
    return done == wanted ? 0 : done < 0 ? -errno : -ENOSPC;
}

int ctf_writer_packet(struct ctf_writer *w, int stream, const struct ring_piece *piece, pid_t pid,
                      uint64_t image_id, uint32_t cpu, uint64_t lost, const struct tick_clock *clock)
{
    bool bad;
    uint32_t at = 0;
    struct ctf_packet head = {.magic = CTF_PACKET_MAGIC,
                              .number = piece->number,
                              .lost = lost,
                              .image_id = image_id,
                              .cpu = cpu,
                              .pid = (uint32_t)pid};
    uint64_t pad = 0;
    for (const struct ring_event *e; (e = ring_piece_event(piece, &at, &bad));) {
        struct ring_event *own = (struct ring_event *)e;
        head.end_ns = own->ticks = clock ? tick_clock_ns(clock, e->ticks) : e->ticks;
        head.begin_ns = head.begin_ns ? head.begin_ns : head.end_ns;
        own->size >>= RING_SIZE_BITS;
        pad = padding(w, e);
    }
    head.packet_bits = 8 * (sizeof(head) + 8ull * at);
    head.content_bits = head.packet_bits - 8 * pad;
    memcpy(head.uuid, w->trace.uuid, sizeof(head.uuid));
    const struct iovec parts[] = {{&head, sizeof(head)}, {(void *)piece->words, 8ull * at}};
    return bad ? -EBADMSG : append_packet(stream, parts, (ssize_t)(sizeof(head) + 8ull * at));
}

int ctf_writer_losses(struct ctf_writer *w, int stream, pid_t pid, uint64_t image_id, uint32_t cpu,
                      uint64_t number, uint64_t lost, uint64_t now_ns)
{
    struct ctf_packet head = {.magic = CTF_PACKET_MAGIC,
                              .begin_ns = now_ns,
                              .end_ns = now_ns,
                              .content_bits = 8 * sizeof(head),
                              .packet_bits = 8 * sizeof(head),
                              .number = number,
                              .lost = lost,
                              .image_id = image_id,
                              .cpu = cpu,
                              .pid = (uint32_t)pid};
    memcpy(head.uuid, w->trace.uuid, sizeof(head.uuid));
    const struct iovec parts[] = {{&head, sizeof(head)}, {NULL, 0}};
    return append_packet(stream, parts, sizeof(head));
}

uint64_t ctf_writer_packet_bytes(const struct ring_piece *piece)
{
    return sizeof(struct ctf_packet) + 8ull * piece->n_words;
}
