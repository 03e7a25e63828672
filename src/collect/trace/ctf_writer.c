/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/ctf_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "allium_version.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"
#include "wire/event_schema.h"

#define CTF_MAGIC 0xC1FC1FC1u

struct ctf_writer {
    int folder;
    uint8_t uuid[16];
};

/* As the metadata below describes it. */
struct __attribute__((packed)) packet_head {
    uint32_t magic;
    uint8_t uuid[16];
    uint32_t stream_id;
    uint64_t begin_ns, end_ns;
    uint64_t content_bits, packet_bits;
    uint64_t number, lost;
    uint32_t cpu, pid;
};

static const char head_text[] =
    "typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
    "typealias integer { size = 16; align = 8; signed = false; } := uint16_t;\n"
    "typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
    "typealias integer { size = 32; align = 8; signed = true; } := int32_t;\n"
    "typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
    "typealias integer { size = 64; align = 8; signed = false; } := size_t;\n"
    "typealias integer { size = 64; align = 8; signed = false; base = 16; } := hex64_t;\n";

static const char stream_text[] =
    "typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := time_t;\n\n"
    "stream {\n"
    "\tid = 0;\n"
    "\tpacket.context := struct {\n"
    "\t\ttime_t timestamp_begin;\n\t\ttime_t timestamp_end;\n\t\tuint64_t content_size;\n\t\tuint64_t "
    "packet_size;\n"
    "\t\tuint64_t packet_seq_num;\n\t\tuint64_t events_discarded;\n\t\tuint32_t cpu_id;\n\t\tuint32_t "
    "vpid;\n\t};\n"
    "\tevent.header := struct { time_t timestamp; uint16_t id; };\n"
    "\tevent.context := struct { uint16_t flags; uint32_t _vtid; };\n"
    "};\n\n";

static void add_uuid(struct buf *b, const uint8_t *uuid)
{
    for (int i = 0; i < 16; i++)
        buf_printf(b, "%02x%s", uuid[i], i == 3 || i == 5 || i == 7 || i == 9 ? "-" : "");
}

static void add_events(struct buf *b)
{
#define CTF_TYPE_hex      "hex64_t"
#define CTF_TYPE_size     "size_t"
#define CTF_TYPE_number   "uint64_t"
#define FIELD(name, type) "\t\t" CTF_TYPE_##type " _" #name ";\n"
#define EVENT(number, name, fields)                                                                          \
    buf_printf(b,                                                                                            \
               "event {\n\tname = \"allium:%s\";\n\tid = %d;\n\tstream_id = 0;\n\tfields := struct "         \
               "{\n%s\t};\n};\n\n",                                                                          \
               #name, number, fields);
    EVENT_SCHEMA(EVENT, FIELD)
#undef EVENT
#undef FIELD
}

static int write_metadata(const struct ctf_writer *w, struct error *e)
{
    struct buf b = BUF_INIT;
    const uint64_t offset = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
    buf_printf(&b, "/* CTF 1.8 */\n\n%s\ntrace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"", head_text);
    add_uuid(&b, w->uuid);
    buf_addstr(
        &b,
        "\";\n\tbyte_order = le;\n\tpacket.header := struct {\n\t\tuint32_t magic;\n\t\tuint8_t uuid[16];\n"
        "\t\tuint32_t stream_id;\n\t};\n};\n\nenv {\n\tdomain = \"ust\";\n\ttracer_name = \"allium\";\n");
    buf_printf(&b, "\tallium_version = \"%s\";\n};\n\n", ALLIUM_VERSION);
    buf_printf(
        &b,
        "clock {\n\tname = \"monotonic\";\n\tdescription = \"CLOCK_MONOTONIC\";\n\tfreq = 1000000000;\n"
        "\toffset = %" PRIu64 ";\n};\n\n%s",
        offset, stream_text);
    add_events(&b);
    int fd = openat(w->folder, "metadata", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const bool good = fd >= 0 && write(fd, buf_str(&b), b.len) == (ssize_t)b.len;
    const int bad =
        good ? 0 : error_set(e, errno, "cannot write the metadata of the trace: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    buf_release(&b);
    return bad;
}

int ctf_writer_new(struct ctf_writer **out, const char *folder, struct error *e)
{
    struct ctf_writer *w = *out = mem_alloc(sizeof(*w));
    w->folder = -1;
    if (getrandom(w->uuid, sizeof(w->uuid), 0) < 0 || (mkdir(folder, 0700) && errno != EEXIST) ||
        (w->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return error_set(e, errno, "cannot make the folder %s: %s", folder, strerror(errno));
    return write_metadata(w, e);
}

void ctf_writer_free(struct ctf_writer *w)
{
    if (!w)
        return;
    if (w->folder >= 0)
        close(w->folder);
    free(w);
}

int ctf_writer_stream(struct ctf_writer *w, pid_t pid, uint64_t image_id, uint32_t cpu, struct error *e)
{
    char name[64];
    snprintf(name, sizeof(name), "events_%d-%016" PRIx64 "_%u", (int)pid, image_id, cpu);
    int fd = openat(w->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd >= 0 ? fd : error_set(e, errno, "cannot write %s: %s", name, strerror(errno));
}

int ctf_writer_packet(struct ctf_writer *w, int stream, const struct ring_piece *piece, pid_t pid,
                      uint32_t cpu, uint64_t lost, const struct tick_clock *clock)
{
    bool bad;
    uint32_t at = 0;
    uint64_t first = 0, last = 0;
    for (const struct ring_event *e; (e = ring_piece_event(piece, &at, &bad));) {
        struct ring_event *own = (struct ring_event *)e;
        last = own->ticks = clock ? tick_clock_ns(clock, e->ticks) : e->ticks;
        first = first ? first : last;
        own->size >>= RING_SIZE_BITS;
    }
    const uint64_t bits = 8 * (sizeof(struct packet_head) + 8ull * at);
    struct packet_head head = {.magic = CTF_MAGIC,
                               .begin_ns = first,
                               .end_ns = last,
                               .content_bits = bits,
                               .packet_bits = bits,
                               .number = piece->number,
                               .lost = lost,
                               .cpu = cpu,
                               .pid = (uint32_t)pid};
    memcpy(head.uuid, w->uuid, sizeof(head.uuid));
    const struct iovec parts[] = {{&head, sizeof(head)}, {(void *)piece->words, 8ull * at}};
    const ssize_t wanted = (ssize_t)(sizeof(head) + 8ull * at);
    return bad ? -EBADMSG : writev(stream, parts, 2) == wanted ? 0 : -errno;
}
