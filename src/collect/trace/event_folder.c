/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/event_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/read_file.h"
#include "collect/trace/ctf_metadata.h"
#include "collect/trace/cut_packet.h"
#include "collect/trace/trace_dir.h"
#include "ring/ring_layout.h"

#define METADATA_MAX     (16u << 20)
#define PACKET_BYTES_MAX (64u << 20)

/* A class, and how many bytes its events have with their heads. */
struct known_class {
    const struct event_class *class; /* NULL: there is none of this number */
    uint64_t event_bytes;
};

/* One folder of CTF. */
struct domain {
    int folder;
    char *path;
    struct ctf_trace trace;
    struct known_class *by_id; /* UINT16_MAX + 1 of them */
};

/* One file of a domain. It is open only while its packets are due: there may be thousands. */
struct stream {
    uint32_t domain;
    char *name;
    int fd; /* -1: not open */
    uint64_t file_at;
    struct ctf_packet head;
    unsigned char *words; /* of the packet */
    uint64_t n_bytes, at; /* of them */
    uint64_t due_ns;      /* the time of the next event; before a packet is read, that of its beginning */
    uint64_t lost;
    uint64_t ended_ns; /* the packet before; 0: there was none */
    bool has_packet, is_cut;
};

struct event_folder {
    struct VEC(struct domain) domains;
    struct VEC(struct stream) streams;
    struct VEC(uint32_t) heap; /* of streams that have not ended: the earliest first */
    struct trace_losses losses;
    struct event_losses lost;
    bool taken; /* the first stream's event was handed out */
};

/* ---- the heap ---- */

static bool is_before(const struct event_folder *t, uint32_t a, uint32_t b)
{
    const struct stream *x = &t->streams.at[a], *y = &t->streams.at[b];
    return x->due_ns != y->due_ns ? x->due_ns < y->due_ns : a < b;
}

static void sink(struct event_folder *t, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < t->heap.len; child++)
            if (is_before(t, t->heap.at[child], t->heap.at[least]))
                least = child;
        if (least == at)
            return;
        const uint32_t moved = t->heap.at[at];
        t->heap.at[at] = t->heap.at[least];
        t->heap.at[least] = moved;
        at = least;
    }
}

/* ---- streams ---- */

static int read_at(const struct stream *s, void *out, uint64_t bytes, uint64_t at)
{
    for (uint64_t done = 0; done < bytes;) {
        const ssize_t n = pread(s->fd, (char *)out + done, bytes - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n ? -errno : -ENODATA;
        done += (uint64_t)n;
    }
    return 0;
}

static int open_stream(const struct event_folder *t, struct stream *s)
{
    if (s->fd < 0)
        s->fd = openat(t->domains.at[s->domain].folder, s->name, O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return s->fd < 0 ? -errno : 0;
}

static void close_stream(struct stream *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    free(s->words);
    s->words = NULL;
}

static int damaged(const struct event_folder *t, const struct stream *s, struct error *e)
{
    return error_set(e, EINVAL, "%s/%s is damaged behind %llu bytes", t->domains.at[s->domain].path, s->name,
                     (unsigned long long)s->file_at);
}

static int unreadable(const struct event_folder *t, const struct stream *s, int bad, struct error *e)
{
    return error_set(e, -bad, "cannot read %s/%s: %s", t->domains.at[s->domain].path, s->name,
                     strerror(-bad));
}

static bool head_fits(const struct ctf_packet *h, const struct ctf_trace *trace)
{
    return h->magic == CTF_PACKET_MAGIC && !memcmp(h->uuid, trace->uuid, sizeof(h->uuid)) && !h->stream_id &&
           h->packet_bits % 64 == 0 && h->packet_bits / 8 >= sizeof(*h) &&
           h->packet_bits / 8 <= PACKET_BYTES_MAX && h->content_bits <= h->packet_bits;
}

/* The head tells how many events were lost up to the end of its packet. */
static void count_lost(struct event_folder *t, const struct stream *s)
{
    const uint64_t more = s->head.lost > s->lost ? s->head.lost - s->lost : 0;
    t->losses.events += more;
    if (!more)
        return;
    const bool is_kernel = !strcmp(t->domains.at[s->domain].trace.domain, "kernel");
    event_losses_add(&t->lost, &(struct lost_stretch){
                                   .domain = is_kernel ? "kernel" : "ust", /* the domains may move yet */
                                   .cpu = s->head.cpu,
                                   .from_ns = s->ended_ns ? s->ended_ns : s->head.begin_ns,
                                   .to_ns = s->head.end_ns,
                                   .events = more});
}

static uint64_t size_of(const struct stream *s)
{
    struct stat st;
    return fstat(s->fd, &st) ? 0 : (uint64_t)st.st_size;
}

/* The stream's last packet, at s->file_at, is not whole. `head`: for its whole events; NULL: there are none. */
static void cut(struct event_folder *t, struct stream *s, uint64_t size, const struct ctf_packet *head)
{
    s->is_cut = true;
    t->losses.cut_packets +=
        cut_packet_close(t->domains.at[s->domain].folder, s->name, size, s->file_at, head);
}

/* Reads the head of the next packet with events. Returns 1; 0: there is none; or -errno with a line. */
static int next_head(struct event_folder *t, struct stream *s, struct error *e)
{
    for (;;) {
        int bad = s->is_cut ? -ENODATA : open_stream(t, s);
        bad = bad ? bad : read_at(s, &s->head, sizeof(s->head), s->file_at);
        if (bad == -ENODATA) {
            const uint64_t size = s->is_cut ? 0 : size_of(s);
            /* a writer may have added a whole head since: the next reading finds its packet */
            if (size > s->file_at && size - s->file_at < sizeof(s->head))
                cut(t, s, size, NULL);
            return 0;
        }
        if (bad)
            return unreadable(t, s, bad, e);
        if (!head_fits(&s->head, &t->domains.at[s->domain].trace))
            return damaged(t, s, e);
        count_lost(t, s);
        s->lost = s->head.lost > s->lost ? s->head.lost : s->lost;
        s->ended_ns = s->head.end_ns;
        s->n_bytes = s->head.packet_bits / 8 - sizeof(s->head);
        s->due_ns = s->head.begin_ns;
        s->at = 0;
        s->has_packet = false;
        if (s->n_bytes)
            return 1;
        s->file_at += sizeof(s->head);
    }
}

static const struct known_class *class_at(const struct event_folder *t, const struct stream *s)
{
    struct ring_event head;
    memcpy(&head, s->words + s->at, sizeof(head));
    return &t->domains.at[s->domain].by_id[head.id];
}

/* Returns the bytes of the event at s->at; 0: there is no whole event of a known class. */
static uint64_t event_bytes(const struct event_folder *t, const struct stream *s)
{
    const uint64_t left = s->n_bytes - s->at;
    const uint64_t bytes = left < sizeof(struct ring_event) ? 0 : class_at(t, s)->event_bytes;
    return bytes <= left ? bytes : 0;
}

/* Keeps the whole events of a packet that is not whole. Returns 1; 0: there are none; or -errno. */
static int keep_whole(struct event_folder *t, struct stream *s)
{
    const uint64_t size = size_of(s), begin = s->file_at + sizeof(s->head);
    const bool is_whole = size > begin && size - begin >= s->n_bytes; /* completed since read_packet() */
    if (!is_whole)
        s->n_bytes = size > begin ? size - begin : 0;
    const int bad = read_at(s, s->words, s->n_bytes, begin);
    if (bad || is_whole)
        return bad ? bad : 1;
    struct ctf_packet head = s->head;
    uint64_t padding = 0; /* bytes behind the last field of the last event */
    for (uint64_t bytes; (bytes = event_bytes(t, s)); s->at += bytes) {
        struct ring_event event;
        memcpy(&event, s->words + s->at, sizeof(event));
        head.end_ns = event.ticks;
        padding = -(uint64_t)event_class_bytes(class_at(t, s)->class) % 8;
    }
    s->n_bytes = s->at;
    s->at = 0;
    head.packet_bits = 8 * (sizeof(head) + s->n_bytes);
    head.content_bits = head.packet_bits - 8 * padding;
    cut(t, s, size, s->n_bytes ? &head : NULL);
    return s->n_bytes != 0;
}

/* Reads the packet behind its head. Returns 1; 0: it has no whole event; or -errno with a line. */
static int read_packet(struct event_folder *t, struct stream *s, struct error *e)
{
    s->words = mem_resize(s->words, s->n_bytes);
    int found = open_stream(t, s);
    found = found ? found : read_at(s, s->words, s->n_bytes, s->file_at + sizeof(s->head));
    found = found == -ENODATA ? keep_whole(t, s) : found ? found : 1;
    if (found < 0)
        return unreadable(t, s, found, e);
    s->file_at += sizeof(s->head) + s->n_bytes;
    s->has_packet = found;
    return found;
}

/* Moves the first stream of the heap behind the event that was handed out. Returns 0, or -errno with a line. */
static int pass_event(struct event_folder *t, struct error *e)
{
    struct stream *s = &t->streams.at[t->heap.at[0]];
    int found = 1;
    s->at += event_bytes(t, s);
    if (s->at < s->n_bytes) {
        struct ring_event head = {0};
        if (!event_bytes(t, s))
            return damaged(t, s, e);
        memcpy(&head, s->words + s->at, sizeof(head));
        s->due_ns = head.ticks;
    } else {
        found = next_head(t, s, e);
    }
    if (found < 0)
        return found;
    if (!found) {
        close_stream(s);
        t->heap.at[0] = t->heap.at[--t->heap.len];
    }
    sink(t, 0);
    return 0;
}

int event_folder_next(struct event_folder *t, struct trace_event *out, struct error *e)
{
    int bad = t->taken ? pass_event(t, e) : 0;
    t->taken = false;
    while (!bad && t->heap.len && !t->streams.at[t->heap.at[0]].has_packet) {
        struct stream *s = &t->streams.at[t->heap.at[0]];
        const int found = read_packet(t, s, e);
        if (found > 0 && !event_bytes(t, s))
            bad = damaged(t, s, e);
        bad = found < 0 ? found : bad;
        if (!found) {
            close_stream(s);
            t->heap.at[0] = t->heap.at[--t->heap.len];
            sink(t, 0);
        }
    }
    if (bad || !t->heap.len)
        return bad;
    struct stream *s = &t->streams.at[t->heap.at[0]];
    struct ring_event head;
    memcpy(&head, s->words + s->at, sizeof(head));
    const struct domain *d = &t->domains.at[s->domain];
    *out = (struct trace_event){.class = class_at(t, s)->class,
                                .domain = d->trace.domain,
                                .time_ns = head.ticks,
                                .realtime_ns = head.ticks + d->trace.offset_ns,
                                .image_id = s->head.image_id,
                                .pid = (pid_t)s->head.pid,
                                .cpu = s->head.cpu,
                                .thread = head.thread,
                                .flags = head.size,
                                .fields = s->words + s->at + sizeof(head)};
    t->taken = true;
    return 1;
}

/* ---- opening ---- */

static int add_stream(struct event_folder *t, uint32_t domain, const char *name, struct error *e)
{
    struct stream *s = vec_push(&t->streams);
    *s = (struct stream){.domain = domain, .name = mem_strdup(name), .fd = -1};
    const int found = next_head(t, s, e);
    close_stream(s);
    if (found > 0)
        *vec_push(&t->heap) = (uint32_t)(t->streams.len - 1);
    return found < 0 ? found : 0;
}

static int add_streams(struct event_folder *t, uint32_t domain, struct error *e)
{
    const int copy = openat(t->domains.at[domain].folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    if (!d)
        return error_set(e, errno, "cannot read %s: %s", t->domains.at[domain].path, strerror(errno));
    int bad = 0;
    for (struct dirent *entry; !bad && (entry = readdir(d));)
        if (!strncmp(entry->d_name, "events_", 7))
            bad = add_stream(t, domain, entry->d_name, e);
    closedir(d);
    return bad;
}

/* Adds the folder if it has metadata. Returns 0, also if it has none, or -errno with a line. */
static int add_domain(struct event_folder *t, const char *path, const char *name, struct error *e)
{
    struct buf text = BUF_INIT, full = BUF_INIT;
    buf_printf(&full, "%s%s%s", path, *name ? "/" : "", name);
    const int folder = open(buf_str(&full), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int bad = folder < 0 ? -errno : file_read_at(folder, "metadata", METADATA_MAX, &text);
    if (bad == -ENOENT || bad == -ENOTDIR) {
        if (folder >= 0)
            close(folder);
        buf_release(&full);
        return 0;
    }
    struct domain *d = vec_push(&t->domains);
    *d = (struct domain){.folder = folder, .path = buf_detach(&full)};
    d->by_id = mem_array(UINT16_MAX + 1u, sizeof(*d->by_id));
    struct error why = {""};
    if (bad)
        bad = error_set(e, -bad, "cannot read %s/metadata: %s", d->path, strerror(-bad));
    else if (strlen(buf_str(&text)) != text.len || ctf_metadata_read(&d->trace, buf_str(&text), &why))
        bad = error_set(e, EINVAL, "%s: %s", d->path, *why.text ? why.text : "its metadata are damaged");
    if (!bad) {
        vec_each (const struct event_class, c, &d->trace.classes)
            d->by_id[c->id] =
                (struct known_class){c, sizeof(struct ring_event) + ((event_class_bytes(c) + 7ull) & ~7ull)};
        t->losses.cut_packets += cut_packet_closed(folder);
        bad = add_streams(t, (uint32_t)t->domains.len - 1, e);
    }
    buf_release(&text);
    return bad;
}

bool event_folder_is(const char *path)
{
    struct buf b = BUF_INIT;
    bool found = false;
    static const char *const places[] = {"", "/ust", "/kernel"};
    for (int i = 0; i < 3 && !found; i++) {
        buf_reset(&b);
        buf_printf(&b, "%s%s/metadata", path, places[i]);
        found = !access(buf_str(&b), F_OK);
    }
    buf_release(&b);
    char *snapshot = found ? NULL : trace_dir_snapshot(path);
    found |= snapshot != NULL;
    free(snapshot);
    return found;
}

int event_folder_open(struct event_folder **out, const char *path, struct error *e)
{
    *out = NULL;
    if (access(path, F_OK))
        return error_set(e, errno, "%s: %s", path, strerror(errno));
    struct event_folder *t = *out = mem_alloc(sizeof(*t));
    int bad = add_domain(t, path, "", e);
    bad = bad ? bad : add_domain(t, path, "ust", e);
    bad = bad ? bad : add_domain(t, path, "kernel", e);
    if (!bad && !t->domains.len)
        bad = trace_dir_refuse(path, e);
    if (bad) {
        event_folder_close(t);
        *out = NULL;
        return bad;
    }
    for (size_t i = t->heap.len / 2; i-- > 0;)
        sink(t, i);
    return 0;
}

void event_folder_close(struct event_folder *t)
{
    if (!t)
        return;
    vec_each (struct stream, s, &t->streams) {
        close_stream(s);
        free(s->name);
    }
    vec_each (struct domain, d, &t->domains) {
        close(d->folder);
        free(d->path);
        free(d->by_id);
        ctf_trace_release(&d->trace);
    }
    vec_release(&t->streams);
    vec_release(&t->domains);
    vec_release(&t->heap);
    event_losses_release(&t->lost);
    free(t);
}

struct trace_losses event_folder_losses(const struct event_folder *t)
{
    return t->losses;
}

const char *event_folder_where(const struct event_folder *t)
{
    vec_each (const struct domain, d, &t->domains)
        if (d->trace.where)
            return d->trace.where;
    return NULL;
}

const char *event_folder_clock(const struct event_folder *t)
{
    vec_each (const struct domain, d, &t->domains)
        if (d->trace.clock)
            return d->trace.clock;
    return NULL;
}

uint64_t event_folder_residual_ns(const struct event_folder *t)
{
    uint64_t most = 0;
    vec_each (const struct domain, d, &t->domains)
        vec_each (const struct ctf_clocks, c, &d->trace.clocks)
            most = c->residual_ns > most ? c->residual_ns : most;
    return most;
}

int64_t event_folder_wall_step_ns(const struct event_folder *t)
{
    vec_each (const struct domain, d, &t->domains)
        if (d->trace.clocks.len) {
            const uint64_t last_ns = d->trace.clocks.at[d->trace.clocks.len - 1].offset_ns;
            const int64_t step_ns = (int64_t)(last_ns - d->trace.offset_ns);
            return llabs(step_ns) < CTF_STEP_LEAST_NS ? 0 : step_ns;
        }
    return 0;
}

const struct event_losses *event_folder_lost(const struct event_folder *t)
{
    return &t->lost;
}

size_t event_folder_domains(const struct event_folder *t)
{
    return t->domains.len;
}

const struct ctf_trace *event_folder_domain(const struct event_folder *t, size_t n)
{
    return &t->domains.at[n].trace;
}

size_t event_folder_classes(const struct event_folder *t)
{
    size_t n = 0;
    vec_each (const struct domain, d, &t->domains)
        n += d->trace.classes.len;
    return n;
}

const struct event_class *event_folder_class(const struct event_folder *t, size_t n)
{
    vec_each (const struct domain, d, &t->domains) {
        if (n < d->trace.classes.len)
            return &d->trace.classes.at[n];
        n -= d->trace.classes.len;
    }
    return NULL;
}
