/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What bench/kernel_events counts: COUNT events of the slab allocator, read from pages as the kernel writes them, while
 * LIVE objects are live. WHAT is "parse": they are read and decoded, or "account": they are also accounted.
 *
 * measured() is what is counted; the pages are made before it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/read_file.h"
#include "collect/kernel/trace/kmem_format.h"
#include "collect/kernel/trace/trace_reader.h"
#include "model/kernel/kmem_accounts.h"

#define PAGE_BYTES   4096u
#define HEADER_BYTES 16u
#define FORMAT_BYTES (1u << 20)
#define CALLS        600u /* by which most of a machine's objects are allocated */
#define CACHES       60u
#define PROCESSES    100u

static uint64_t state_of_draw = 1;

static uint32_t draw(uint32_t below)
{
    state_of_draw = state_of_draw * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state_of_draw >> 33) % below);
}

/* ---- pages ---- */

/* A record as events/kmem/NAME/format of Linux 6.18 describes it, with the header of the ring buffer. */
struct record {
    uint32_t header;
    uint16_t type;
    uint8_t flags, preempt_count;
    int32_t pid;
    uint64_t call_site, address;
    union {
        struct {
            uint64_t requested, allocated, gfp;
            uint32_t node, unused;
        } kmalloc;
        struct {
            uint32_t name_at, unused;
            uint64_t requested, allocated, gfp;
            uint32_t node, accounted;
            char name[16];
        } cache_alloc;
        struct {
            uint32_t name_at;
            char name[16];
        } cache_free;
    } u;
} __attribute__((packed));

enum { CACHE_FREE = 656, KFREE, KMALLOC, CACHE_ALLOC }; /* as in the formats */

struct pages {
    int fd;
    uint64_t bytes, now_ns;
    uint8_t page[PAGE_BYTES];
    uint32_t used;
};

static void end_page(struct pages *p)
{
    memcpy(p->page + 8, &p->used, sizeof(p->used));
    if (pwrite(p->fd, p->page, PAGE_BYTES, (off_t)p->bytes) != PAGE_BYTES)
        exit(1);
    p->bytes += PAGE_BYTES;
    p->used = 0;
}

static void put(struct pages *p, struct record *r, uint32_t bytes)
{
    bytes = (bytes + 3) & ~3u;
    if (HEADER_BYTES + p->used + bytes > PAGE_BYTES)
        end_page(p);
    p->now_ns += 1000;
    if (!p->used)
        memcpy(p->page, &p->now_ns, sizeof(p->now_ns));
    r->header = (bytes - 4) / 4 | (p->used ? 1000u : 0) << 5;
    memcpy(p->page + HEADER_BYTES + p->used, r, bytes);
    p->used += bytes;
}

/* An object is allocated and freed by calls, and of a cache, that follow from its number. */
static void put_event(struct pages *p, uint32_t object, bool allocates)
{
    const uint32_t call = object % CALLS, bytes = 8 + 8 * (object % 64);
    const bool has_cache = object % 2;
    struct record r = {.type = (uint16_t)(has_cache   ? allocates ? CACHE_ALLOC : CACHE_FREE
                                          : allocates ? KMALLOC
                                                      : KFREE),
                       .pid = (int32_t)(1000 + draw(PROCESSES)),
                       .call_site = UINT64_C(0xffffffff81000000) + 64 * call + (allocates ? 0 : 32),
                       .address = UINT64_C(0xffff888100000000) + UINT64_C(512) * object};
    uint32_t size = (uint32_t)((uint8_t *)&r.u - (uint8_t *)&r);
    if (has_cache && allocates) {
        r.u.cache_alloc.name_at = 64u | 16u << 16;
        r.u.cache_alloc.requested = r.u.cache_alloc.allocated = bytes;
        r.u.cache_alloc.gfp = 0xcc0;
        snprintf(r.u.cache_alloc.name, sizeof(r.u.cache_alloc.name), "cache_%u", call % CACHES);
        size += sizeof(r.u.cache_alloc);
    } else if (has_cache) {
        r.u.cache_free.name_at = 28u | 16u << 16;
        snprintf(r.u.cache_free.name, sizeof(r.u.cache_free.name), "cache_%u", call % CACHES);
        size += sizeof(r.u.cache_free);
    } else if (allocates) {
        r.u.kmalloc.requested = bytes - 3;
        r.u.kmalloc.allocated = bytes;
        r.u.kmalloc.gfp = 0xdc0;
        size += sizeof(r.u.kmalloc);
    }
    put(p, &r, size);
}

/* ---- reading ---- */

struct reading {
    struct kmem_format *format;
    struct kmem_accounts *accounts; /* NULL: events are only decoded */
    uint64_t events;
};

static void take(void *arg, const struct trace_record *record, uint32_t cpu)
{
    struct reading *r = arg;
    struct kmem_event e;
    if (kmem_format_decode(r->format, record->data, record->bytes, &e) <= 0)
        exit(1);
    r->events++;
    e.time_ns = record->time;
    e.cpu = cpu;
    e.comm = "a program";
    e.process = e.pid;
    if (r->accounts && !kmem_accounts_add(r->accounts, &e))
        exit(1);
}

static struct buf text_of(const char *folder, const char *name)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    buf_printf(&path, "%s/%s-6.18.format", folder, name);
    if (file_read(buf_str(&path), FORMAT_BYTES, &text))
        exit(1);
    buf_release(&path);
    return text;
}

static struct kmem_format *formats(const char *folder)
{
    struct error e;
    struct kmem_format *f = kmem_format_new();
    for (size_t i = 0; i < KMEM_FORMAT_REQUIRED; i++) {
        struct buf text = text_of(folder, kmem_format_events[i]);
        if (kmem_format_add(f, kmem_format_events[i], buf_str(&text), text.len, &e))
            exit(1);
        buf_release(&text);
    }
    return f;
}

__attribute__((noinline)) static int measured(struct trace_reader *reader, struct reading *r)
{
    return trace_reader_step(reader, true, take, r);
}

/* Reads the pages, and drops them. */
static int read_pages(struct pages *p, const char *folder, struct reading *r,
                      int (*f)(struct trace_reader *, struct reading *))
{
    struct error e;
    struct trace_reader *reader;
    struct buf layout = text_of(folder, "header_page");
    end_page(p);
    const struct trace_kept_pages kept = {0, p->fd, 0, p->bytes};
    int bad = trace_reader_open_kept(&reader, buf_str(&layout), &kept, 1, &e);
    bad = bad ? bad : f(reader, r);
    trace_reader_close(reader);
    buf_release(&layout);
    p->bytes = 0;
    return bad ? bad : ftruncate(p->fd, 0);
}

static int unmeasured(struct trace_reader *reader, struct reading *r)
{
    return trace_reader_step(reader, true, take, r);
}

/* FOLDER (of formats) WHAT LIVE COUNT */
int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    const uint32_t live = (uint32_t)strtoul(argv[3], NULL, 10), count = (uint32_t)strtoul(argv[4], NULL, 10);
    struct pages p = {.fd = memfd_create("pages", MFD_CLOEXEC), .now_ns = 1};
    struct reading r = {.format = formats(argv[1])};
    uint32_t *objects = mem_array(live, sizeof(*objects)), next = 0;
    if (!strcmp(argv[2], "account"))
        r.accounts = kmem_accounts_new();
    for (; next < live; next++)
        put_event(&p, objects[next] = next, true);
    int bad = read_pages(&p, argv[1], &r, unmeasured);
    for (uint32_t i = 0; i < count / 2; i++) { /* each frees one of them, and allocates another */
        uint32_t *object = &objects[draw(live)];
        put_event(&p, *object, false);
        put_event(&p, *object = next++, true);
    }
    bad = bad ? bad : read_pages(&p, argv[1], &r, measured);
    bad = bad || r.events != live + 2 * (uint64_t)(count / 2);
    bad = bad || (r.accounts && kmem_accounts_totals(r.accounts)->live_objects != live);
    kmem_accounts_free(r.accounts);
    kmem_format_free(r.format);
    free(objects);
    return bad;
}
