/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An independent truth for period 1: a preloaded library in front of the agent that counts what the program asks its
 * allocator for. It shares no code with the agent. Each process image writes its counts to a file of its own,
 * $COUNT_SHIM_DIR/PID.NUMBER.count, through a shared mapping, so that they survive _exit, exec and SIGKILL.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct counts {
    _Atomic uint64_t allocations, bytes, frees, failures;
};

static struct counts early, *counts = &early;
static _Thread_local int inside __attribute__((tls_model("initial-exec")));

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
} real;

/* What dlsym itself asks for before the real functions are known. */
static char scratch[4096] __attribute__((aligned(16)));
static size_t scratch_used;

static int is_scratch(const void *p)
{
    return (const char *)p >= scratch && (const char *)p < scratch + sizeof(scratch);
}

static void *scratch_alloc(size_t size)
{
    void *p = scratch + scratch_used;
    scratch_used += (size + 15) & ~(size_t)15;
    return scratch_used <= sizeof(scratch) ? p : NULL;
}

static void open_counts(void)
{
    static unsigned number;
    const char *dir = getenv("COUNT_SHIM_DIR");
    char path[512];
    if (!dir)
        return;
    snprintf(path, sizeof(path), "%s/%d.%u.count", dir, (int)getpid(), number);
    while (access(path, F_OK) == 0)
        snprintf(path, sizeof(path), "%s/%d.%u.count", dir, (int)getpid(), ++number);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (!ftruncate(fd, 4096)) {
        struct counts *c = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (c != MAP_FAILED) {
            c->allocations += early.allocations;
            c->bytes += early.bytes;
            c->frees += early.frees;
            c->failures += early.failures;
            counts = c;
        }
    }
    close(fd);
}

static void after_fork(void)
{
    memset(&early, 0, sizeof(early));
    counts = &early;
    inside++;
    open_counts();
    inside--;
}

static void find(void)
{
    if (real.pvalloc || inside)
        return;
    inside++;
    real.malloc = dlsym(RTLD_NEXT, "malloc");
    real.calloc = dlsym(RTLD_NEXT, "calloc");
    real.realloc = dlsym(RTLD_NEXT, "realloc");
    real.free = dlsym(RTLD_NEXT, "free");
    real.posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    real.aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    real.memalign = dlsym(RTLD_NEXT, "memalign");
    real.valloc = dlsym(RTLD_NEXT, "valloc");
    real.pvalloc = dlsym(RTLD_NEXT, "pvalloc");
    inside--;
}

__attribute__((constructor)) static void begin(void)
{
    find();
    inside++;
    open_counts();
    pthread_atfork(NULL, NULL, after_fork);
    inside--;
}

static void *note(void *p, size_t size)
{
    if (inside)
        return p;
    if (!p) {
        counts->failures++;
        return p;
    }
    counts->allocations++;
    counts->bytes += size;
    return p;
}

#define READY(fn, fallback)                                                                                  \
    if (!real.fn) {                                                                                          \
        find();                                                                                              \
        if (!real.fn)                                                                                        \
            return fallback;                                                                                 \
    }

void *malloc(size_t size)
{
    READY(malloc, scratch_alloc(size))
    return note(real.malloc(size), size);
}

void free(void *p)
{
    if (is_scratch(p))
        return;
    if (!real.free)
        find();
    if (p && !inside)
        counts->frees++;
    real.free(p);
}

void *calloc(size_t n, size_t each)
{
    READY(calloc, scratch_alloc(n * each))
    return note(real.calloc(n, each), n * each);
}

void *realloc(void *old, size_t size)
{
    READY(realloc, NULL)
    void *p = real.realloc(old, size);
    if (inside)
        return p;
    if (p || (old && !size)) {
        if (old)
            counts->frees++;
        if (p) {
            counts->allocations++;
            counts->bytes += size;
        }
    } else {
        counts->failures++;
    }
    return p;
}

void *reallocarray(void *old, size_t n, size_t each)
{
    size_t size;
    if (__builtin_mul_overflow(n, each, &size)) {
        counts->failures++;
        errno = ENOMEM;
        return NULL;
    }
    return realloc(old, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    READY(posix_memalign, ENOMEM)
    int error = real.posix_memalign(out, alignment, size);
    note(error ? NULL : *out, size);
    return error;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    READY(aligned_alloc, NULL)
    return note(real.aligned_alloc(alignment, size), size);
}

void *memalign(size_t alignment, size_t size)
{
    READY(memalign, NULL)
    return note(real.memalign(alignment, size), size);
}

void *valloc(size_t size)
{
    READY(valloc, NULL)
    return note(real.valloc(size), size);
}

void *pvalloc(size_t size)
{
    READY(pvalloc, NULL)
    return note(real.pvalloc(size), size);
}
