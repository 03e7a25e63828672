/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * huge: touches a known number of huge pages. Lines on stdin, "WORD NUMBER [FILE]"; to each it answers with one number,
 * which is that of SIGBUS since the last line. All that it maps stays mapped until "drop".
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE      4096u
#define HUGE_PAGE (2ul << 20)
#define GIGABYTE  (1ul << 30)
#define MAPS_MAX  256u

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static struct {
    char *at;
    size_t bytes;
} maps[MAPS_MAX];
static size_t n_maps;
static sigjmp_buf failed;
static unsigned failures;

static void require(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        _exit(1);
    }
}

static void fails(int signal)
{
    (void)signal;
    failures++;
    siglongjmp(failed, 1);
}

static char *map_at(char *at, size_t bytes, int flags, int fd)
{
    char *here = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    require(here != MAP_FAILED && n_maps < MAPS_MAX, "mmap");
    maps[n_maps].at = here;
    maps[n_maps++].bytes = bytes;
    return here;
}

/* Memory for so many huge pages, at their boundaries. */
static char *region(size_t pages, int flags, int fd)
{
    char *all =
        mmap(NULL, (pages + 1) * HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    require(all != MAP_FAILED, "mmap of room");
    all += HUGE_PAGE - (size_t)all % HUGE_PAGE;
    return map_at(all, pages * HUGE_PAGE, flags | MAP_FIXED, fd);
}

static char *advised(size_t pages)
{
    char *at = region(pages, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    require(!madvise(at, pages * HUGE_PAGE, MADV_HUGEPAGE), "MADV_HUGEPAGE");
    return at;
}

static void touch(volatile char *at, size_t pages, size_t step)
{
    for (volatile size_t i = 0; i < pages; i++) /* the handler's jump leaves it as it is */
        if (!sigsetjmp(failed, 1))
            at[i * step] = 1;
}

static void look(const volatile char *at, size_t pages, size_t step)
{
    for (size_t i = 0; i < pages; i++)
        (void)at[i * step];
}

static char *hugetlb(size_t pages, size_t step)
{
    const int size = step == GIGABYTE ? 30 << 26 : 21 << 26; /* MAP_HUGE_SHIFT */
    return map_at(NULL, pages * step, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_HUGETLB | size, -1);
}

/* The kernel writes a byte into each. Returns how many it could not write. */
static unsigned by_kernel(char *at, size_t pages)
{
    unsigned bad = 0;
    int fd = open("/dev/zero", O_RDONLY);
    for (size_t i = 0; i < pages; i++)
        bad += read(fd, at + i * HUGE_PAGE, 1) != 1;
    close(fd);
    return bad;
}

/* Memory in small pages, which may become huge ones. */
static char *small(size_t pages)
{
    char *at = region(pages, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    require(!madvise(at, pages * HUGE_PAGE, MADV_NOHUGEPAGE), "MADV_NOHUGEPAGE");
    touch(at, pages * (HUGE_PAGE / PAGE), PAGE);
    require(!madvise(at, pages * HUGE_PAGE, MADV_HUGEPAGE), "MADV_HUGEPAGE");
    return at;
}

/* One small page of each huge one. */
static void sparse(size_t pages)
{
    char *at = region(pages, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    require(!madvise(at, pages * HUGE_PAGE, MADV_NOHUGEPAGE), "MADV_NOHUGEPAGE");
    touch(at, pages, HUGE_PAGE);
    require(!madvise(at, pages * HUGE_PAGE, MADV_HUGEPAGE), "MADV_HUGEPAGE");
}

static void from_file(const char *path, size_t pages)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    require(fd >= 0 && !ftruncate(fd, (off_t)(pages * HUGE_PAGE)), path);
    touch(region(pages, MAP_SHARED, fd), pages, HUGE_PAGE);
    close(fd);
}

static void drop(void)
{
    while (n_maps) {
        n_maps--;
        munmap(maps[n_maps].at, maps[n_maps].bytes);
    }
}

/* A page in the middle of each huge page of the last mapping goes. */
static void punch(void)
{
    for (size_t at = 0; at < maps[n_maps - 1].bytes; at += HUGE_PAGE)
        require(!madvise(maps[n_maps - 1].at + at + HUGE_PAGE / 2, PAGE, MADV_DONTNEED), "MADV_DONTNEED");
}

/* Takes memory of so many huge pages in small ones, and gives back every second one. */
static void pieces(size_t pages)
{
    const size_t bytes = pages * HUGE_PAGE;
    char *all = region(pages, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    require(!madvise(all, bytes, MADV_NOHUGEPAGE), "MADV_NOHUGEPAGE");
    touch(all, bytes / PAGE, PAGE);
    for (size_t at = 0; at < bytes; at += 2 * PAGE)
        require(!madvise(all + at, PAGE, MADV_DONTNEED), "MADV_DONTNEED");
}

static void churn(void)
{
    for (;;) {
        touch(advised(4), 4, HUGE_PAGE);
        drop();
        char *at = map_at(NULL, 64 * PAGE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
        touch(at, 64, PAGE);
        drop();
    }
}

static void obey(const char *word, size_t n, const char *path)
{
    if (!strcmp(word, "hugetlb"))
        touch(hugetlb(n, HUGE_PAGE), n, HUGE_PAGE);
    else if (!strcmp(word, "gigantic"))
        touch(hugetlb(n, GIGABYTE), n, GIGABYTE);
    else if (!strcmp(word, "hugetlb_kernel"))
        failures += by_kernel(hugetlb(n, HUGE_PAGE), n);
    else if (!strcmp(word, "thp"))
        touch(advised(n), n, HUGE_PAGE);
    else if (!strcmp(word, "thp_kernel"))
        failures += by_kernel(advised(n), n);
    else if (!strcmp(word, "plain"))
        touch(region(n, MAP_PRIVATE | MAP_ANONYMOUS, -1), n, HUGE_PAGE);
    else if (!strcmp(word, "zero"))
        look(advised(n), n, HUGE_PAGE);
    else if (!strcmp(word, "populate"))
        require(!madvise(advised(n), n * HUGE_PAGE, MADV_POPULATE_WRITE), "MADV_POPULATE_WRITE");
    else if (!strcmp(word, "small"))
        small(n);
    else if (!strcmp(word, "sparse"))
        sparse(n);
    else if (!strcmp(word, "collapse"))
        require(!madvise(small(n), n * HUGE_PAGE, MADV_COLLAPSE), "MADV_COLLAPSE");
    else if (!strcmp(word, "file"))
        from_file(path, n);
    else if (!strcmp(word, "punch"))
        punch();
    else if (!strcmp(word, "pieces"))
        pieces(n);
    else if (!strcmp(word, "drop"))
        drop();
    else if (!strcmp(word, "churn"))
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

int main(void)
{
    static char line[4096], word[32], path[2048], answer[32];
    size_t n;
    const struct sigaction action = {.sa_handler = fails};
    require(!sigaction(SIGBUS, &action, NULL), "sigaction");
    while (read_line(line, sizeof(line))) {
        n = 0;
        path[0] = '\0';
        failures = 0;
        sscanf(line, "%31s %zu %2047s", word, &n, path);
        obey(word, n, path);
        int len = snprintf(answer, sizeof(answer), "%u\n", failures);
        require(write(1, answer, (size_t)len) == len, "write");
    }
    return 0;
}
