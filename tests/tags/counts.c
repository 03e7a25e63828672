/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts what real programs ask for, independently of what they were built with: a library for LD_PRELOAD, over glibc's
 * allocator. A request is tagged code's if it comes from the program's own file, or from liballium.so, which makes some
 * for it, but for calls by pointer, which have no tag. The sums lie in COUNTS_DIR/PID, and are right at any time.
 *
 * A free that is the last thing that a function does is a jump, by tagged code or by pointer, which cannot be told
 * apart: what is freed so may be live in the accounts, until its address is given again.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <wchar.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

/* Of each process. What was freed by code without tags is live here as it is in the accounts, until it must be gone. */
struct sums {
    int64_t allocations, allocated_bytes, live_objects, live_bytes;
    int64_t doubtful, doubtful_bytes; /* of those that live, perhaps not */
    char program[1024];
};

enum who { FOREIGN, TAGGED, DOUBTFUL };

/* What lives, by address. */
struct object {
    uintptr_t at;
    size_t bytes;
    bool hidden; /* freed by code without tags, or perhaps so */
    bool doubtful;
};
#define OBJECTS (1u << 21)
#define LARGE   4094 /* beyond it, another one in its page tells the library that the first is gone */

static struct sums *sums;
static struct object *objects;
static volatile char *here; /* wiped in fork children */
static volatile int locked;
static bool skips; /* COUNTS_SKIP: one allocation is left out, to show that it is missed */

static void *mapped(size_t bytes, int flags, int fd)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd, 0);
    return p == MAP_FAILED ? (abort(), NULL) : p;
}

static void begin_process(void)
{
    char path[300];
    const char *folder = getenv("COUNTS_DIR");
    if (!here) {
        here = mapped(4096, MAP_PRIVATE | MAP_ANONYMOUS, -1);
        madvise((char *)here, 4096, MADV_WIPEONFORK);
    }
    snprintf(path, sizeof(path), "%s/%d", folder ? folder : "/nonexistent", (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd >= 0 && ftruncate(fd, sizeof(*sums)))
        abort();
    sums = fd < 0 ? mapped(4096, MAP_PRIVATE | MAP_ANONYMOUS, -1) : mapped(4096, MAP_SHARED, fd);
    if (fd >= 0)
        close(fd);
    if (objects)
        munmap(objects, OBJECTS * sizeof(*objects));
    objects = mapped(OBJECTS * sizeof(*objects), MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (readlink("/proc/self/exe", sums->program, sizeof(sums->program) - 1) < 0)
        abort();
    skips = getenv("COUNTS_SKIP") != NULL;
    *here = 1;
}

static void enter(sigset_t *old)
{
    int was = errno;
    sigset_t all;
    memset(&all, 0xff, sizeof(all));
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, old, 8);
    while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE))
        syscall(SYS_sched_yield);
    if (!here || !*here)
        begin_process();
    errno = was;
}

static void leave(const sigset_t *old)
{
    __atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, old, NULL, 8);
}

/* What an entry of a table of linkage jumps to; another address: itself. */
static const void *past_linkage(const unsigned char *p)
{
    const unsigned char *at = p + (memcmp(p, "\xf3\x0f\x1e\xfa", 4) ? 0 : 4); /* endbr64 */
    int32_t n;
    at += *at == 0xf2; /* bnd */
    memcpy(&n, at + 2, sizeof(n));
    return at[0] == 0xff && at[1] == 0x25 ? *(void *const *)(at + 6 + n) : p;
}

/* Who calls that function of ours from there. */
static enum who whose(const unsigned char *returns_to, const void *function)
{
    struct dl_find_object found;
    int32_t n;
    if (_dl_find_object((void *)(returns_to - 1), &found))
        return FOREIGN;
    const char *name = found.dlfo_link_map->l_name;
    if (strstr(name, "/liballium.so"))
        return TAGGED;
    if (*name)
        return FOREIGN;
    memcpy(&n, returns_to - 4, sizeof(n));
    if (returns_to[-5] == 0xe8 && past_linkage(returns_to + n) == function)
        return TAGGED;
    if (returns_to[-6] == 0xff && returns_to[-5] == 0x15 && *(void *const *)(returns_to + n) == function)
        return TAGGED;
    return DOUBTFUL;
}

static uint32_t bucket(uintptr_t at)
{
    return (uint32_t)((at >> 3) * 0x9e3779b97f4a7c15u >> 43);
}

static struct object *find(uintptr_t at)
{
    uint32_t i = bucket(at);
    while (objects[i].at && objects[i].at != at)
        i = (i + 1) % OBJECTS;
    return &objects[i];
}

/* Takes it out; those behind it that had to go further move up. */
static void gone(struct object *o)
{
    sums->live_objects--;
    sums->live_bytes -= (int64_t)o->bytes;
    sums->doubtful -= o->doubtful;
    sums->doubtful_bytes -= o->doubtful ? (int64_t)o->bytes : 0;
    uint32_t hole = (uint32_t)(o - objects);
    for (uint32_t i = (hole + 1) % OBJECTS; objects[i].at; i = (i + 1) % OBJECTS) {
        if ((i - bucket(objects[i].at)) % OBJECTS >= (i - hole) % OBJECTS) {
            objects[hole] = objects[i];
            hole = i;
        }
    }
    objects[hole].at = 0;
}

static void gone_at(const void *p)
{
    struct object *o = find((uintptr_t)p);
    if (o->at)
        gone(o);
}

static void born(void *p, size_t bytes)
{
    gone_at(p);
    for (uintptr_t at = (uintptr_t)p & ~4095ul, end = at + 4096; bytes > LARGE && at < end; at += 8) {
        struct object *o = find(at);
        if (o->at && o->hidden && o->bytes > LARGE)
            gone(o);
    }
    struct object *o = find((uintptr_t)p);
    *o = (struct object){.at = (uintptr_t)p, .bytes = bytes};
    sums->allocations += !skips;
    skips = false;
    sums->allocated_bytes += (int64_t)bytes;
    sums->live_objects++;
    sums->live_bytes += (int64_t)bytes;
    if (sums->live_objects > OBJECTS / 2)
        abort();
}

/* What came of a request of that caller. */
static void *made(void *p, size_t bytes, enum who by)
{
    sigset_t old;
    if (p && by == TAGGED) {
        enter(&old);
        born(p, bytes);
        leave(&old);
    }
    return p;
}

/* What is about to be given back by that caller. -> its size, if it was one of ours that is given back now */
static struct object going(void *p, enum who by)
{
    sigset_t old;
    struct object was = {0};
    enter(&old);
    struct object *o = find((uintptr_t)p);
    if (o->at && by != TAGGED) {
        o->hidden = true;
        if (by == DOUBTFUL && !o->doubtful) {
            o->doubtful = true;
            sums->doubtful++;
            sums->doubtful_bytes += (int64_t)o->bytes;
        }
    } else if (o->at) {
        was = *o;
        gone(o);
    }
    leave(&old);
    return was;
}

static void put_back(struct object was)
{
    sigset_t old;
    if (!was.at)
        return;
    enter(&old);
    born((void *)was.at, was.bytes);
    sums->allocations--;
    sums->allocated_bytes -= (int64_t)was.bytes;
    leave(&old);
}

#define CALLER_OF(function) whose(__builtin_return_address(0), (const void *)(function))

void *malloc(size_t bytes)
{
    return made(__libc_malloc(bytes), bytes, CALLER_OF(malloc));
}

void *calloc(size_t count, size_t each)
{
    return made(__libc_calloc(count, each), count * each, CALLER_OF(calloc));
}

void *memalign(size_t alignment, size_t bytes)
{
    return made(__libc_memalign(alignment, bytes), bytes, CALLER_OF(memalign));
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return made(__libc_memalign(alignment, bytes), bytes, CALLER_OF(aligned_alloc));
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    void *p = made(__libc_memalign(alignment, bytes), bytes, CALLER_OF(posix_memalign));
    if (p)
        *out = p;
    return p ? 0 : ENOMEM;
}

void free(void *p)
{
    if (p)
        going(p, CALLER_OF(free));
    __libc_free(p);
}

void *realloc(void *old, size_t bytes)
{
    enum who by = CALLER_OF(realloc);
    struct object was = {0};
    if (old)
        was = going(old, by);
    void *p = __libc_realloc(old, bytes);
    if (!p && (bytes || !old))
        put_back(was);
    return made(p, bytes, by);
}

static void *copied(const void *from, size_t bytes, enum who by)
{
    void *p = __libc_malloc(bytes);
    return p ? made(memcpy(p, from, bytes), bytes, by) : NULL;
}

char *strdup(const char *s)
{
    return copied(s, strlen(s) + 1, CALLER_OF(strdup));
}

char *strndup(const char *s, size_t most)
{
    size_t length = strnlen(s, most);
    char *p = __libc_malloc(length + 1);
    if (p)
        *(char *)mempcpy(p, s, length) = 0;
    return made(p, length + 1, CALLER_OF(strndup));
}

wchar_t *wcsdup(const wchar_t *s)
{
    return copied(s, (wcslen(s) + 1) * sizeof(*s), CALLER_OF(wcsdup));
}

/* What only the C library can do; what it asks for on the way is nobody's. */
#define NEXT(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))

int vasprintf(char **out, const char *format, va_list args)
{
    int length = NEXT(vasprintf)(out, format, args);
    made(length < 0 ? NULL : *out, (size_t)length + 1, CALLER_OF(vasprintf));
    return length;
}

int __vasprintf_chk(char **, int, const char *, va_list);
int __vasprintf_chk(char **out, int flag, const char *format, va_list args)
{
    int length = NEXT(__vasprintf_chk)(out, flag, format, args);
    made(length < 0 ? NULL : *out, (size_t)length + 1, CALLER_OF(__vasprintf_chk));
    return length;
}

char *realpath(const char *path, char *into)
{
    char *p = NEXT(realpath)(path, into);
    return into ? p : made(p, p ? strlen(p) + 1 : 0, CALLER_OF(realpath));
}

ssize_t getdelim(char **line, size_t *room, int end, FILE *from)
{
    enum who by = CALLER_OF(getdelim);
    char *was_at = *line;
    size_t was_room = *room;
    struct object was = {0};
    if (by == TAGGED && was_at && was_room)
        was = going(was_at, by);
    ssize_t length = NEXT(getdelim)(line, room, end, from);
    if (*line == was_at && *room == was_room)
        put_back(was);
    else
        made(*line, *room, by);
    return length;
}
