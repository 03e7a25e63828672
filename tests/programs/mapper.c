/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that maps memory in all the ways there are, and writes down, at each moment, the time and what the kernel
 * says is mapped: "at NAME TIME_NS PID", the lines of /proc/self/maps, "end". mapper OUT LIBRARY
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ul

static int out;
static char text[1 << 20];

/* Nothing is mapped while this runs. */
static void moment(const char *name)
{
    struct timespec t;
    size_t len = 0;
    ssize_t n;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int head = snprintf(text, sizeof(text), "at %s %lu %d\n", name,
                        (unsigned long)t.tv_sec * 1000000000u + (unsigned long)t.tv_nsec, (int)getpid());
    len = (size_t)head;
    int maps = open("/proc/self/maps", O_RDONLY);
    while ((n = read(maps, text + len, sizeof(text) - len - 8)) > 0)
        len += (size_t)n;
    close(maps);
    memcpy(text + len, "end\n", 4);
    if (write(out, text, len + 4) != (ssize_t)len + 4)
        _exit(3);
}

static char *map(size_t pages, int rights, int flags, int fd)
{
    char *at = mmap(NULL, pages * PAGE, rights, flags, fd, 0);
    if (at == MAP_FAILED)
        _exit(4);
    return at;
}

static void file_over_memory(const char *file)
{
    int fd = open(file, O_RDONLY);
    char *at = map(16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    moment("anonymous");
    memset(at, 1, 16 * PAGE);
    if (mmap(at + 4 * PAGE, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, PAGE) == MAP_FAILED)
        _exit(4);
    moment("file-over");
    if (mprotect(at + 8 * PAGE, PAGE, PROT_READ))
        _exit(4);
    moment("protected");
    close(fd);
}

static void shared(void)
{
    int memory = memfd_create("mapper", 0), id = shmget(IPC_PRIVATE, 4 * PAGE, 0600);
    ftruncate(memory, 4 * PAGE) ? _exit(4) : (void)0;
    map(4, PROT_READ, MAP_SHARED, memory);
    map(4, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    void *at = shmat(id, NULL, 0);
    shmctl(id, IPC_RMID, NULL);
    if (at == (void *)-1)
        _exit(4);
    char name[64];
    snprintf(name, sizeof(name), "/allium-mapper-%d", (int)getpid());
    int named = shm_open(name, O_CREAT | O_RDWR, 0600);
    shm_unlink(name);
    ftruncate(named, PAGE) ? _exit(4) : (void)0;
    map(1, PROT_READ, MAP_SHARED, named);
    mmap(NULL, 2ul << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE, -1, 0);
    moment("shared");
}

static void *thread(void *arg)
{
    moment(arg);
    return NULL;
}

__attribute__((noinline)) static void deep(int n)
{
    volatile char room[PAGE];
    room[0] = (char)n;
    if (n)
        deep(n - 1);
    else
        moment("deep");
    room[1] = room[0];
}

static void forked(void)
{
    pid_t child = fork();
    if (!child) {
        moment("child");
        map(3, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
        moment("child-mapped");
        _exit(0);
    }
    waitpid(child, NULL, 0);
    map(5, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    moment("parent");
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    out = open(argv[1], O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (argc > 3) {
        moment("executed");
        return 0;
    }
    moment("start");
    if (sbrk(8 * PAGE) == (void *)-1)
        return 4;
    moment("brk");
    free(malloc(100));
    if (sbrk(64 * PAGE) == (void *)-1)
        return 4;
    moment("brk-more");
    file_over_memory(argv[0]);
    shared();
    deep(100);
    if (!dlopen(argv[2], RTLD_NOW))
        return 5;
    moment("dlopen");
    pthread_t id;
    pthread_create(&id, NULL, thread, "thread");
    pthread_join(id, NULL);
    forked();
    execl(argv[0], argv[0], argv[1], argv[2], "again", NULL);
    return 6;
}
