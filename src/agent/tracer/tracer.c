/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/tracer/tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>

#include "agent/clock.h"
#include "agent/hooks/cold.h"
#include "agent/ledger_writer.h"
#include "agent/process.h"
#include "agent/reentry.h"
#include "agent/sites_link.h"
#include "base/sigsafe/atomic.h"
#include "base/sigsafe/syscall.h"
#include "ring/ring_write.h"
#include "wire/event_schema.h"
#include "wire/ledger_file.h"

#define CPUS_MOST    500u
#define PACKET_BYTES (64u << 10)
#define RING_BYTES   (4u << 20)

/* libc's registration for restartable sequences (2.35 and later). */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

uint32_t tracer_on;

static struct ring ring;
static uint32_t ring_generation; /* of the process that has made the ring; 0: none has */

/* Return addresses whose modules the ledger has, each at the place of its hash. */
#define SITES_SEEN_BITS 14
static uintptr_t seen[1u << SITES_SEEN_BITS];

static __thread uint32_t thread_id __attribute__((tls_model("initial-exec"))); /* 0: not asked yet */

static bool reach(char *from, uint64_t bytes)
{
    return ledger_may_call(&process.ledger) && !ledger_back(from, bytes);
}

/* Returns whether the caller may write into the ring now: it is made, and the thread is known. */
static __attribute__((noinline)) bool is_ready_cold(void)
{
    if (!process_is_known(&thread_self) && !process_ensure_current_cold(&thread_self))
        return false;
    if (!process_open_ledger() || load_acquire(&ring_generation) != process.generation)
        return false;
    if (!thread_id && ledger_may_call(&process.ledger))
        thread_id = (uint32_t)sys_call(SYS_gettid, 0);
    return true;
}

static inline __attribute__((always_inline)) bool is_ready(void)
{
    return (likely(thread_id) && likely(process_is_current())) || is_ready_cold();
}

/* Adds the address, and the module that it is in, to the ledger: the tool finds its name there. */
static COLD void add_site(uintptr_t site, uintptr_t *place)
{
    uint8_t outside;
    struct thread *t = &thread_self;
    if (!ledger_enter_own(t, &outside))
        return;
    if (writer_caller(site) != LEDGER_NONE)
        store_relaxed(place, site);
    ledger_exit(t, outside);
}

/* Returns whether the user has switched tracing off. The control page is there once the ledger is. */
static inline bool is_off(void)
{
    return unlikely(load_relaxed(&process.ledger.control->word) & LEDGER_CONTROL_TRACE_OFF);
}

static inline __attribute__((always_inline)) void put(const uint32_t words, enum event_id id, uint64_t a,
                                                      uint64_t b, uintptr_t site)
{
    if (unlikely(!is_ready()) || is_off())
        return;
    uintptr_t *place = &seen[site * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SITES_SEEN_BITS)];
    if (unlikely(load_relaxed(place) != site) && site)
        add_site(site, place);
    if (words == 4)
        ring_put(&ring, words, ring_what((uint16_t)id, words, thread_id), a, site, 0);
    else
        ring_put(&ring, words, ring_what((uint16_t)id, words, thread_id), a, b, site);
}

void tracer_forget_sites(void)
{
    if (tracer_on)
        __builtin_memset(seen, 0, sizeof(seen));
}

#define CALLER ((uintptr_t)__builtin_return_address(0))

static HOT void *trace_malloc(size_t size)
{
    void *p = next.malloc(size);
    put(5, EVENT_malloc, (uintptr_t)p, size, CALLER);
    return p;
}

static HOT void trace_free(void *p)
{
    if (likely(p))
        put(4, EVENT_free, (uintptr_t)p, 0, CALLER);
    next.free(p);
}

static HOT void *trace_calloc(size_t count, size_t each)
{
    void *p = next.calloc(count, each);
    put(5, EVENT_calloc, (uintptr_t)p, count * each, CALLER);
    return p;
}

static void *trace_realloc(void *old, size_t size)
{
    put(4, EVENT_realloc_begin, (uintptr_t)old, 0, CALLER);
    void *p = next.realloc(old, size);
    put(5, EVENT_realloc_end, (uintptr_t)p, size, CALLER);
    return p;
}

static int trace_posix_memalign(void **out, size_t alignment, size_t size)
{
    int error = next.posix_memalign(out, alignment, size);
    put(5, EVENT_memalign, error ? 0 : (uintptr_t)*out, size, CALLER);
    return error;
}

#define ALIGNED(name, parameters, arguments)                                                                 \
    static void *trace_##name parameters                                                                     \
    {                                                                                                        \
        void *p = next.name arguments;                                                                       \
        put(5, EVENT_memalign, (uintptr_t)p, size, CALLER);                                                  \
        return p;                                                                                            \
    }
ALIGNED(aligned_alloc, (size_t alignment, size_t size), (alignment, size))
ALIGNED(memalign, (size_t alignment, size_t size), (alignment, size))
ALIGNED(valloc, (size_t size), (size))
ALIGNED(pvalloc, (size_t size), (size))
#undef ALIGNED

void *tracer_book(uintptr_t site, void *p, size_t size)
{
    put(5, EVENT_malloc, (uintptr_t)p, size, site);
    return p;
}

void tracer_release(uintptr_t site, const void *p)
{
    if (p)
        put(4, EVENT_free, (uintptr_t)p, 0, site);
}

void tracer_allocated(const struct walk_start *from, const void *p, size_t size)
{
    put(5, EVENT_malloc, (uintptr_t)p, size, from->pc);
}

void tracer_released(const struct walk_start *from, const void *p)
{
    if (p)
        put(4, EVENT_free, (uintptr_t)p, 0, from->pc);
}

void tracer_realloc_begins(const void *old)
{
    put(4, EVENT_realloc_begin, (uintptr_t)old, 0, 0);
}

void tracer_realloc_ends(const struct walk_start *from, const void *p, size_t size)
{
    put(5, EVENT_realloc_end, (uintptr_t)p, size, from->pc);
}

void tracer_begin(void)
{
    const struct ledger_control *initial = process.config.initial_control;
    if (process.config.sites & LEDGER_WITH_TRACE_LATER)
        process_control_at_start((initial ? initial->word : 0) | LEDGER_CONTROL_TRACE_OFF);
    tracer_on = sites_on = 1;
    next_hot = (struct next_hot){.malloc = trace_malloc,
                                 .calloc = trace_calloc,
                                 .realloc = trace_realloc,
                                 .free = trace_free,
                                 .posix_memalign = trace_posix_memalign,
                                 .aligned_alloc = trace_aligned_alloc,
                                 .memalign = trace_memalign,
                                 .valloc = trace_valloc,
                                 .pvalloc = trace_pvalloc};
}

void tracer_begin_thread(void)
{
    thread_id = 0;
}

/* The number of CPUs that the machine may ever have: one more than the last number in "0-3" or "0,2-5". A thread on one
 * beyond them writes into the ring that threads share. */
static uint32_t count_cpus(void)
{
    char text[64];
    uint32_t last = 0;
    const long fd = sys_call(SYS_openat, AT_FDCWD, "/sys/devices/system/cpu/possible", O_RDONLY | O_CLOEXEC);
    const long n = sys_failed(fd) ? 0 : sys_call(SYS_read, fd, text, sizeof(text));
    for (long k = 0; k < n; k++)
        last = text[k] < '0' || text[k] > '9' ? (k + 1 < n && text[k] != '\n' ? 0 : last)
                                              : 10 * last + (uint32_t)(text[k] - '0');
    if (!sys_failed(fd))
        sys_call(SYS_close, fd);
    return last < CPUS_MOST ? last + 1 : CPUS_MOST;
}

/* Makes a file beside the ledger (a memfd if the ledger is one), and maps it. With `content`, its memory is there and
 * can only be read; without, it cannot be touched before ledger_back(). NULL: that failed. */
static char *map_beside(const char *suffix, uint64_t bytes, const void *content, uint64_t content_bytes)
{
    char name[LEDGER_NAME_BYTES], *map = NULL;
    const struct ledger *l = &process.ledger;
    const long dir =
        l->dir[0] ? sys_call(SYS_openat, AT_FDCWD, l->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -ENOENT;
    ledger_file_name(name, &process.config, dir, (int)sys_call(SYS_getpid, 0), suffix);
    const long fd = ledger_file_create(dir, name, bytes);
    if (!sys_failed(fd) &&
        (!content || (!sys_call(SYS_fallocate, fd, 0, 0, bytes) &&
                      sys_call(SYS_pwrite64, fd, content, content_bytes, 0) == (long)content_bytes)))
        map = ledger_file_map(fd, bytes, content ? PROT_READ : PROT_NONE);
    if (map) {
        sys_call(SYS_munlock, map, bytes);
        sys_call(SYS_madvise, map, bytes, MADV_DONTFORK);
        sys_call(SYS_madvise, map, bytes, MADV_DONTDUMP);
    } else if (!sys_failed(fd) && !sys_failed(dir)) {
        sys_call(SYS_unlinkat, dir, name, 0);
    }
    if (!sys_failed(fd))
        sys_call(SYS_close, fd);
    if (!sys_failed(dir))
        sys_call(SYS_close, dir);
    return map;
}

void tracer_begin_ledger(void)
{
    tracer_forget_sites();
    struct {
        uint64_t magic, read[CPUS_MOST];
    } positions = {0};
    const uint32_t cpus = count_cpus();
    const uint64_t bytes = ring_file_bytes(cpus, RING_BYTES);
    char *map = map_beside(LEDGER_RING_SUFFIX, bytes, NULL, 0);
    if (!map || ledger_back(map, bytes - (cpus + 1ull) * RING_BYTES))
        return;
    ring_begin_positions((struct ring_positions *)&positions, cpus, RING_BYTES);
    const bool overwrites = process.config.sites & LEDGER_WITH_FLIGHT;
    ring.read = overwrites ? NULL
                           : (const struct ring_positions *)map_beside(LEDGER_READ_SUFFIX, LEDGER_PAGE_BYTES,
                                                                       &positions, sizeof(positions));
    if (!ring.read && !overwrites)
        return;
    ring.is_tsc = clock_is_tsc;
    ring.ticks = process_ticks;
    ring.reach = reach;
    struct ring_header *header = (struct ring_header *)map;
    header->image_id = process.config.image_id;
    header->clock = clock_is_tsc;
    header->overwrites = overwrites;
    ring_begin(&ring, header, cpus, PACKET_BYTES, RING_BYTES,
               &__rseq_size && __rseq_size ? __rseq_offset : 0);
    store_release(&ring_generation, process.generation);
}
