/* SPDX-License-Identifier: BSD-2-Clause */
#include "below_own.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Blocks of one size lie in a region of their own, and the last that was freed is the first that is given again. Those
 * of 8 and of 8-aligned requests begin at odd multiples of 8, too; a large one that is no multiple of a page begins
 * anywhere in one.
 */
#define REGION (256ull << 20)
static const size_t sizes[] = {8,   24,   4104, 16,   48,   4112,  32,    64,     128,    256,
                               512, 1024, 2048, 4096, 8192, 16384, 65536, 262144, 1 << 20};
#define CLASSES (sizeof(sizes) / sizeof(*sizes))
/* classes before are of alignment 8, those before UNEVEN of 16; the others are aligned to their size */
#define ODD     3
#define UNEVEN  6
#define GRANULE 8
#define LARGE   4094 /* beyond it, a second one in its page tells the library that the first is gone */
#define PAGE    BELOW_PAGE

/* Of each 8 bytes: the object that begins there, and one that did and whose free the library could not see. */
struct known {
    size_t bytes, hidden_bytes;
    uint32_t epoch, hidden_epoch;
    uint16_t place, hidden_place;
    uint8_t class, live;
    uint8_t inside; /* made in the midst of a whole request */
};

__thread volatile int below_place __attribute__((tls_model("initial-exec")));
volatile unsigned below_fails;
volatile unsigned char below_off[BELOW_PLACES];

static char *arena;
static struct known *known;
static char *bump[CLASSES], *given_back[CLASSES];
struct below_counts *below_counts;
static volatile char *here; /* wiped in fork children */
static char directory[256];
uint32_t below_epoch;
static uint64_t seed = 1;
static volatile int locked;
/* One count of this place is left out, the first or so many later, to show that it is missed:
 * BELOW_SKIP=PLACE[,LATER] */
static int skip_place = -1, skip_later;
static bool seen; /* BELOW_SEEN: the library is told of what code without tags frees and resizes */

void below_die(const char *why)
{
    if (write(2, why, strlen(why)) >= 0)
        abort();
    _exit(99);
}

static void *mapped(uint64_t bytes, int flags, int fd)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd, 0);
    if (p == MAP_FAILED)
        below_die("below: mmap failed\n");
    return p;
}

static void begin_process(void)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%d", directory, (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(*below_counts)))
        below_die("below: BELOW_DIR cannot be written\n");
    if (below_counts)
        munmap(below_counts, sizeof(*below_counts));
    below_counts = mapped(sizeof(*below_counts), MAP_SHARED, fd);
    close(fd);
    below_epoch++;
    *here = 1;
}

/* Of the environment, which a sanitizer's first request comes before: the kernel has it, too. */
static const char *variable(const char *name)
{
    static char all[64 << 10];
    size_t n = strlen(name), len = 0;
    if (getenv(name))
        return getenv(name);
    int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
    for (ssize_t got;
         fd >= 0 && len < sizeof(all) - 1 && (got = read(fd, all + len, sizeof(all) - 1 - len)) > 0;)
        len += (size_t)got;
    close(fd);
    all[len] = '\0';
    for (const char *at = all; at < all + len; at += strlen(at) + 1)
        if (!strncmp(at, name, n) && at[n] == '=')
            return at + n + 1;
    return NULL;
}

static void begin_image(void)
{
    const char *dir = variable("BELOW_DIR"), *skip = variable("BELOW_SKIP");
    snprintf(directory, sizeof(directory), "%s", dir ? dir : "/nonexistent");
    skip_place = skip ? atoi(skip) : -1;
    skip_later = skip && strchr(skip, ',') ? atoi(strchr(skip, ',') + 1) : 0;
    seen = variable("BELOW_SEEN") != NULL;
    arena = mapped(REGION * (CLASSES + 1), MAP_PRIVATE | MAP_ANONYMOUS, -1);
    arena += REGION - (uintptr_t)arena % REGION;
    known = mapped(REGION * CLASSES / GRANULE * sizeof(*known), MAP_PRIVATE | MAP_ANONYMOUS, -1);
    here = mapped(PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    madvise((char *)here, PAGE, MADV_WIPEONFORK);
    for (unsigned i = 0; i < CLASSES; i++)
        bump[i] = arena + i * REGION;
}

static void lock(sigset_t *old)
{
    sigset_t all;
    memset(&all, 0xff, sizeof(all));
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, old, 8);
    while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE))
        syscall(SYS_sched_yield);
}

void below_leave(const sigset_t *old)
{
    __atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, old, NULL, 8);
}

void below_enter(sigset_t *old)
{
    int was = errno;
    lock(old);
    if (!arena)
        begin_image();
    if (!*here)
        begin_process();
    errno = was;
}

pid_t below_fork(void)
{
    sigset_t old;
    below_enter(&old);
    pid_t pid = fork();
    below_leave(&old);
    return pid;
}

static struct known *known_at(const void *p)
{
    uint64_t at = (uint64_t)((const char *)p - arena);
    if (at >= REGION * CLASSES)
        below_die("below: an address that is none of ours\n");
    return &known[at / GRANULE];
}

bool below_skipped(int place)
{
    if (place != skip_place || skip_later-- > 0)
        return false;
    skip_place = -1;
    return true;
}

static void add_made(int place, size_t bytes)
{
    if (below_skipped(place))
        return;
    below_counts->rows[place].made_calls++;
    below_counts->rows[place].made_bytes += bytes;
}

/* The library learns now that what was there is gone. */
static bool reveal(struct known *k)
{
    if (!k->hidden_place || k->hidden_epoch != below_epoch)
        return false;
    below_counts->rows[k->hidden_place].hidden_calls--;
    below_counts->rows[k->hidden_place].hidden_bytes -= (int64_t)k->hidden_bytes;
    k->hidden_place = 0;
    return true;
}

static void reveal_page(const char *p)
{
    struct known *first = known_at(p - (uintptr_t)p % PAGE);
    for (unsigned i = 0; i < PAGE / GRANULE; i++)
        if (first[i].hidden_place && first[i].hidden_bytes > LARGE)
            below_counts->unseen += reveal(&first[i]);
}

/* Whom something new is charged to. */
int below_charged(int place)
{
    return place & BELOW_WHOLE || below_off[place] ? BELOW_FOREIGN : place;
}

static void born(char *p, int at, size_t bytes)
{
    struct known *k = known_at(p);
    int place = below_charged(at);
    k->place = (uint16_t)place;
    k->bytes = bytes;
    k->epoch = below_epoch;
    k->live = 1;
    k->inside = at & BELOW_WHOLE ? 1 : 0;
    if (place == BELOW_FOREIGN)
        return;
    below_counts->unseen += reveal(k);
    if (bytes > LARGE)
        reveal_page(p);
    add_made(place, bytes);
}

/* The object's end, by code at that place. */
static void gone(struct known *k, int by)
{
    if (!k->live)
        below_die("below: freed twice, or never given\n");
    k->live = 0;
    if (by & BELOW_WHOLE)
        by = k->inside ? BELOW_FOREIGN : BELOW_FREES;
    bool tagged = k->place != BELOW_FOREIGN && k->epoch == below_epoch;
    if (tagged && !(by == BELOW_FREES && below_skipped(by))) {
        below_counts->rows[k->place].gone_calls++;
        below_counts->rows[k->place].gone_bytes += k->bytes;
    }
    if (by != BELOW_FOREIGN || seen) {
        reveal(k);
    } else if (tagged) {
        k->hidden_place = k->place;
        k->hidden_bytes = k->bytes;
        k->hidden_epoch = below_epoch;
        below_counts->rows[k->place].hidden_calls++;
        below_counts->rows[k->place].hidden_bytes += (int64_t)k->bytes;
    }
}

uint32_t below_draw(uint32_t most)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % most;
}

bool below_draws_failure(int place)
{
    return place != BELOW_FOREIGN && below_fails && below_draw(below_fails) == 0;
}

static int class_for(size_t bytes, size_t alignment)
{
    unsigned from = alignment <= 8 ? 0 : alignment <= 16 ? ODD : UNEVEN;
    int best = -1;
    for (unsigned i = from; i < CLASSES; i++)
        if (sizes[i] >= bytes && (i < UNEVEN || sizes[i] >= alignment) &&
            (best < 0 || sizes[i] < sizes[best]))
            best = (int)i;
    return best;
}

static char *take_block(size_t bytes, size_t alignment)
{
    int class = class_for(bytes, alignment);
    if (class < 0)
        return NULL;
    char *p = given_back[class];
    if (p) {
        memcpy(&given_back[class], p, sizeof(p));
    } else {
        p = bump[class];
        if (p + sizes[class] > arena + (unsigned)(class + 1) * REGION)
            return NULL;
        bump[class] += sizes[class];
    }
    known_at(p)->class = (uint8_t) class;
    return p;
}

static void return_block(char *p)
{
    unsigned class = known_at(p)->class;
    memcpy(p, &given_back[class], sizeof(p));
    given_back[class] = p;
}

static void *failed(int place)
{
    below_counts->rows[below_charged(place)].failed++;
    errno = ENOMEM;
    return NULL;
}

static void *give(size_t bytes, size_t alignment, bool zeroed)
{
    sigset_t old;
    below_enter(&old);
    int place = below_place;
    char *p = below_draws_failure(place) ? NULL : take_block(bytes, alignment);
    if (p) {
        if (zeroed)
            memset(p, 0, bytes);
        born(p, place, bytes);
    } else {
        failed(place);
    }
    below_leave(&old);
    return p;
}

void *malloc(size_t bytes)
{
    return give(bytes, bytes <= 8 ? 8 : 16, false);
}

void *calloc(size_t count, size_t each)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, each, &bytes))
        bytes = SIZE_MAX;
    return give(bytes, bytes <= 8 ? 8 : 16, true);
}

void *memalign(size_t alignment, size_t bytes)
{
    return give(bytes, alignment, false);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return give(bytes, alignment, false);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    int was = errno;
    void *p = give(bytes, alignment, false);
    errno = was;
    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}

/* What code without tags resizes stays whose it was, where such calls are seen. */
static int resizes_for(const struct known *k, int place)
{
    return place == BELOW_FOREIGN && seen && k->epoch == below_epoch ? k->place : place;
}

static void *resized(char *old, size_t bytes, int place)
{
    struct known *k = known_at(old);
    int whose = resizes_for(k, place);
    if (!bytes) {
        gone(k, place);
        return_block(old);
        return NULL;
    }
    if (below_draws_failure(place))
        return failed(place);
    if (bytes <= sizes[k->class] && bytes > sizes[k->class] / 4 && (k->class >= ODD || bytes <= 8)) {
        gone(k, whose);
        born(old, whose, bytes);
        return old;
    }
    char *p = take_block(bytes, bytes <= 8 ? 8 : 16);
    if (!p)
        return failed(place);
    memcpy(p, old, bytes < k->bytes ? bytes : k->bytes);
    gone(k, whose);
    born(p, whose, bytes);
    return_block(old);
    return p;
}

/* Not by each other's names: who else has them in front of us would count them twice. */
static void *resize(void *old, size_t bytes)
{
    sigset_t mask;
    if (!old)
        return give(bytes, bytes <= 8 ? 8 : 16, false);
    below_enter(&mask);
    void *p = resized(old, bytes, below_place);
    below_leave(&mask);
    return p;
}

void *realloc(void *old, size_t bytes)
{
    return resize(old, bytes);
}

void *reallocarray(void *old, size_t count, size_t each)
{
    size_t bytes;
    return resize(old, __builtin_mul_overflow(count, each, &bytes) ? SIZE_MAX : bytes);
}

void free(void *p)
{
    sigset_t old;
    if (!p)
        return;
    below_enter(&old);
    gone(known_at(p), below_place);
    return_block(p);
    below_leave(&old);
}

size_t malloc_usable_size(void *p)
{
    return p ? sizes[known_at(p)->class] : 0;
}

void below_done(int place, void *object, size_t bytes)
{
    sigset_t old;
    below_enter(&old);
    if (object)
        born(object, place, bytes);
    else
        below_counts->rows[below_charged(place)].failed++;
    below_leave(&old);
}

size_t below_bytes(const void *object)
{
    return object ? known_at(object)->bytes : 0;
}

void below_account(int place, size_t bytes, int is_gone)
{
    sigset_t old;
    below_enter(&old);
    struct below_row *row = &below_counts->rows[below_charged(place)];
    if (is_gone || !below_skipped(place)) {
        *(is_gone ? &row->gone_calls : &row->made_calls) += 1;
        *(is_gone ? &row->gone_bytes : &row->made_bytes) += bytes;
    }
    below_leave(&old);
}

void below_asked(int place, int was_refused)
{
    sigset_t old;
    below_enter(&old);
    if (!below_off[place] && !(was_refused && below_skipped(place | BELOW_REFUSALS))) {
        below_counts->rows[place].asked++;
        below_counts->rows[place].refused += was_refused != 0;
    }
    below_leave(&old);
}
