/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * toucher: touches a known number of pages of a known kind. Lines on stdin, "KIND PAGES [FILE]"; to each it answers
 * with its own page faults so far as the kernel counts them, "MINOR MAJOR". All memory of its own is touched before.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE      4096u
#define HUGE_PAGE (2u << 20)
#define LATE_NS   100000000

static void require(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        _exit(1);
    }
}

static void write_pages(volatile char *at, size_t pages, size_t step)
{
#pragma GCC unroll 1 /* one instruction touches all pages */
    for (size_t i = 0; i < pages; i++)
        at[i * step] = 1;
}

static void read_pages(const volatile char *at, size_t pages)
{
    for (size_t i = 0; i < pages; i++)
        (void)at[i * PAGE];
}

static char *map(size_t bytes, int flags, int fd, int protection)
{
    char *at = mmap(NULL, bytes, protection, flags, fd, 0);
    require(at != MAP_FAILED, "mmap");
    return at;
}

static char *anonymous(size_t pages)
{
    return map(pages * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1, PROT_READ | PROT_WRITE);
}

static void heap(size_t pages)
{
    char *at = sbrk(0);
    size_t rest = (PAGE - (size_t)at % PAGE) % PAGE;
    require(sbrk((intptr_t)(rest + pages * PAGE)) != (void *)-1, "sbrk");
    write_pages(at + rest, pages, PAGE);
}

static __attribute__((noinline)) void stack(size_t pages)
{
    volatile char here[PAGE];
    here[0] = (char)pages;
    if (pages > 1)
        stack(pages - 1);
    /* A frame whose array is needed after the call, or clang makes a loop of it. */
    __asm__ volatile("" : : "r"(here) : "memory");
}

/* From below so much of the stack that was never touched: more than whoever looks at the stack takes. */
static __attribute__((noinline)) void below_hole(size_t pages)
{
    char hole[100 * PAGE];
    __asm__ volatile("" : : "r"(hole) : "memory");
    write_pages(anonymous(pages), pages, PAGE);
    __asm__ volatile("" : : "r"(hole) : "memory");
}

static void from_file(const char *path, size_t pages, int how)
{
    int fd = open(path, O_RDONLY);
    require(fd >= 0, path);
    char *at = map(pages * PAGE, MAP_PRIVATE, fd, PROT_READ | PROT_WRITE);
    madvise(at, pages * PAGE, MADV_RANDOM); /* no page is read ahead */
    if (how == 'd')
        require(!posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), "fadvise");
    if (how == 'w')
        write_pages(at, pages, PAGE);
    else
        read_pages(at, pages);
    close(fd);
}

/* Pages of a file that come into memory by read(2). */
static void read_file(const char *path, size_t pages)
{
    static char page[PAGE];
    int fd = open(path, O_RDONLY);
    require(fd >= 0 && !posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), path);
    for (size_t i = 0; i < pages; i++)
        require(read(fd, page, PAGE) == PAGE, "read");
    close(fd);
}

/* Shared memory of a new file: of memfd_create() if there is no path. */
static void shared_file(const char *path, size_t pages)
{
    int fd = *path ? open(path, O_RDWR | O_CREAT, 0600) : (int)syscall(SYS_memfd_create, "touched", 0);
    require(fd >= 0 && !ftruncate(fd, (off_t)(pages * PAGE)), "shared file");
    write_pages(map(pages * PAGE, MAP_SHARED, fd, PROT_READ | PROT_WRITE), pages, PAGE);
    close(fd);
}

static void segment(size_t pages)
{
    int id = shmget(IPC_PRIVATE, pages * PAGE, 0600);
    require(id >= 0, "shmget");
    char *at = shmat(id, NULL, 0);
    require(!shmctl(id, IPC_RMID, NULL) && at != (void *)-1, "shmat");
    write_pages(at, pages, PAGE);
}

/* A file that stays mapped; its pages are touched one by one. */
static const char *kept;

static void keep(const char *path, size_t pages)
{
    int fd = open(path, O_RDONLY);
    require(fd >= 0, path);
    kept = map(pages * PAGE, MAP_PRIVATE, fd, PROT_READ);
    close(fd);
}

/* The kernel writes into memory that nobody has touched. */
static void kernel(size_t pages)
{
    int fd = open("/dev/zero", O_RDONLY);
    require(read(fd, anonymous(pages), pages * PAGE) == (ssize_t)(pages * PAGE), "read");
    close(fd);
}

static void huge(size_t pages)
{
    char *at = map((pages + 1) * HUGE_PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1, PROT_READ | PROT_WRITE);
    at += HUGE_PAGE - (size_t)at % HUGE_PAGE;
    madvise(at, pages * HUGE_PAGE, MADV_HUGEPAGE);
    for (size_t i = 0; i < pages; i++)
        write_pages(at + i * HUGE_PAGE, HUGE_PAGE / PAGE, PAGE);
}

/* The child writes what its parent has written. It waits until its parent has been told of its faults. */
static void copies(size_t pages)
{
    char *at = anonymous(pages);
    write_pages(at, pages, PAGE);
    pid_t child = fork();
    if (!child) {
        struct rusage before, after;
        prctl(PR_SET_NAME, "copier");
        getrusage(RUSAGE_SELF, &after); /* the pages of the stack that both are on have been copied then */
        for (int i = 0; i < 2; i++)
            getrusage(RUSAGE_SELF, &before);
        write_pages(at, pages, PAGE);
        getrusage(RUSAGE_SELF, &after);
        _exit(after.ru_minflt - before.ru_minflt != (long)pages);
    }
    int status;
    require(waitpid(child, &status, 0) == child && !status, "the child");
}

/* At one address, in turns, so many pages of anonymous memory and of shared. */
static void changing(size_t pages)
{
    char *at = anonymous(1);
    for (size_t i = 0; i < 2 * pages; i++) {
        int kind = i % 2 ? MAP_SHARED : MAP_PRIVATE;
        require(mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_ANONYMOUS | kind, -1, 0) == at,
                "mmap");
        write_pages(at, 1, PAGE);
    }
}

/* Lets each fault of another process wait before it gets its page. */
static void serve_late(int fd, size_t pages)
{
    const struct timespec wait = {.tv_nsec = LATE_NS};
    for (size_t i = 0; i < pages; i++) {
        struct uffd_msg fault;
        struct uffdio_zeropage page = {.range.len = PAGE};
        require(read(fd, &fault, sizeof(fault)) == sizeof(fault), "read of a fault");
        nanosleep(&wait, NULL);
        page.range.start = fault.arg.pagefault.address & ~(PAGE - 1ull);
        require(!ioctl(fd, UFFDIO_ZEROPAGE, &page), "page for a fault");
    }
    _exit(0);
}

/* Pages that come LATE_NS after they were touched. */
static void late(size_t pages)
{
    struct uffdio_api api = {.api = UFFD_API};
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY), status;
    require(fd >= 0 && !ioctl(fd, UFFDIO_API, &api), "userfaultfd");
    char *at = anonymous(pages);
    struct uffdio_register all = {.range = {(uintptr_t)at, pages * PAGE},
                                  .mode = UFFDIO_REGISTER_MODE_MISSING};
    require(!ioctl(fd, UFFDIO_REGISTER, &all), "register with userfaultfd");
    pid_t child = fork();
    if (!child)
        serve_late(fd, pages);
    write_pages(at, pages, PAGE);
    require(waitpid(child, &status, 0) == child && !status, "the child");
    close(fd);
}

static void churn(void)
{
    for (;;) {
        char *at = anonymous(64);
        write_pages(at, 64, PAGE);
        munmap(at, 64 * PAGE);
    }
}

static void touch(const char *kind, size_t pages, const char *path)
{
    if (!strcmp(kind, "heap"))
        heap(pages);
    else if (!strcmp(kind, "stack"))
        stack(pages);
    else if (!strcmp(kind, "anonymous"))
        write_pages(anonymous(pages), pages, PAGE);
    else if (!strcmp(kind, "hole"))
        below_hole(pages);
    else if (!strcmp(kind, "zero"))
        read_pages(anonymous(pages), pages);
    else if (!strcmp(kind, "shared"))
        write_pages(map(pages * PAGE, MAP_SHARED | MAP_ANONYMOUS, -1, PROT_READ | PROT_WRITE), pages, PAGE);
    else if (!strcmp(kind, "hugetlb"))
        write_pages(
            map(pages * HUGE_PAGE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, PROT_READ | PROT_WRITE),
            pages, HUGE_PAGE);
    else if (!strcmp(kind, "populated"))
        map(pages * PAGE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, PROT_READ | PROT_WRITE);
    else if (!strcmp(kind, "dropped") || !strcmp(kind, "written"))
        from_file(path, pages, *kind);
    else if (!strcmp(kind, "read"))
        read_file(path, pages);
    else if (!strcmp(kind, "memfd") || !strcmp(kind, "shmem"))
        shared_file(path, pages);
    else if (!strcmp(kind, "sysv"))
        segment(pages);
    else if (!strcmp(kind, "keep"))
        keep(path, pages);
    else if (!strcmp(kind, "at"))
        read_pages(kept + pages * PAGE, 1);
    else if (!strcmp(kind, "kernel"))
        kernel(pages);
    else if (!strcmp(kind, "huge"))
        huge(pages);
    else if (!strcmp(kind, "copied"))
        copies(pages);
    else if (!strcmp(kind, "changing"))
        changing(pages);
    else if (!strcmp(kind, "late"))
        late(pages);
    else if (!strcmp(kind, "churn"))
        churn();
}

/* False: there is no more. */
static int read_line(char *line, size_t most)
{
    size_t n = 0;
    while (n + 1 < most && read(0, line + n, 1) == 1)
        if (line[n++] == '\n')
            break;
    line[n] = '\0';
    return n > 0;
}

/* One system call, and nothing that has not run before. */
static void answer(void)
{
    static char line[64];
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    int n = snprintf(line, sizeof(line), "%ld %ld\n", r.ru_minflt, r.ru_majflt);
    require(write(1, line, (size_t)n) == n, "write");
}

int main(void)
{
    static char line[4096], kind[32], path[2048];
    size_t pages;
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    mlockall(MCL_CURRENT); /* everything that is there */
    munlockall();
    while (read_line(line, sizeof(line))) {
        pages = 0;
        path[0] = '\0';
        sscanf(line, "%31s %zu %2047s", kind, &pages, path);
        if (!strcmp(kind, "huge"))
            prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
        touch(kind, pages, path);
        answer();
    }
    return 0;
}
