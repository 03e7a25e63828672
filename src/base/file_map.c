/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/file_map.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

/* The handler reads the list without a lock: entries are never freed, and are used again. */
struct entry {
    _Atomic uintptr_t begin;
    _Atomic size_t bytes; /* 0: not in use */
    _Atomic int protection;
    struct entry *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *_Atomic entries;
static struct sigaction before;
static size_t page_bytes;

static bool replace_page(uintptr_t at)
{
    const uintptr_t page = at & ~(page_bytes - 1);
    for (struct entry *e = atomic_load(&entries); e; e = e->next)
        if (at - e->begin < e->bytes)
            return mmap((void *)page, page_bytes, e->protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                        0) != MAP_FAILED;
    return false;
}

static void on_sigbus(int signal, siginfo_t *info, void *context)
{
    const int error = errno;
    (void)signal;
    (void)context;
    /*
     * The access is repeated. If the page could not be replaced, it raises the signal once more, with its former
     * effect.
     */
    const bool is_sent = info->si_code <= 0; /* by kill(2): no access will raise it again */
    if (is_sent || !replace_page((uintptr_t)info->si_addr))
        sigaction(SIGBUS, &before, NULL);
    if (is_sent)
        raise(SIGBUS);
    errno = error;
}

static void install(void)
{
    struct sigaction a = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO}, now;
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    sigemptyset(&a.sa_mask);
    if (sigaction(SIGBUS, NULL, &now) || (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_sigbus))
        return;
    before = now;
    sigaction(SIGBUS, &a, NULL);
}

static void add(uintptr_t at, size_t bytes, int protection)
{
    struct entry *e = atomic_load(&entries);
    while (e && e->bytes)
        e = e->next;
    if (!e) {
        e = mem_alloc(sizeof(*e));
        e->next = atomic_load(&entries);
        atomic_store(&entries, e);
    }
    e->begin = at;
    e->protection = protection;
    e->bytes = bytes;
}

void *file_map_open(int fd, size_t bytes, int protection)
{
    void *map = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return NULL;
    pthread_mutex_lock(&lock);
    install();
    add((uintptr_t)map, bytes, protection);
    pthread_mutex_unlock(&lock);
    return map;
}

void file_map_close(void *map, size_t bytes)
{
    if (!map)
        return;
    pthread_mutex_lock(&lock);
    for (struct entry *e = atomic_load(&entries); e; e = e->next)
        if (e->bytes && e->begin == (uintptr_t)map)
            e->bytes = 0;
    munmap(map, bytes);
    pthread_mutex_unlock(&lock);
}
