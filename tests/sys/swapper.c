/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * swapper: has memory that is swapped out, and touches a known number of its pages. Lines on stdin; to each it answers
 * with three numbers: its pages that are in swap, and its major and minor faults so far. Its own memory is locked.
 *
 *   map PAGES random|same|zero private|shared
 *   out                  asks the kernel to swap all of it out
 *   touch FROM COUNT STEP
 *   peek FROM COUNT      has the kernel read the pages for a system call
 *   ahead                asks for all of it in advance
 *   nothing
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE      4096u
#define PAGES_MAX (1u << 20)
#define SWAPPED   (1ull << 62) /* in /proc/self/pagemap */

static char *memory;
static size_t pages;
static int pagemap;

static void require(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        _exit(1);
    }
}

/* Each page differs from the others, except for zeros. A random one does not compress, and one of the `same` word does.
 */
static void fill(size_t page, const char *kind)
{
    uint64_t *at = (uint64_t *)(memory + page * PAGE), word = page * 0x9e3779b97f4a7c15u + 1;
    if (!strcmp(kind, "zero"))
        memset(at, 0, PAGE);
    for (size_t i = 0; i < PAGE / sizeof(*at) && strcmp(kind, "zero") != 0; i++) {
        at[i] = word;
        if (!strcmp(kind, "random"))
            word = word * 6364136223846793005u + 1442695040888963407u, at[i] ^= word >> 33;
    }
}

static void map(size_t count, const char *kind, const char *how)
{
    pages = count;
    memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
                  MAP_ANONYMOUS | (!strcmp(how, "shared") ? MAP_SHARED : MAP_PRIVATE), -1, 0);
    require(memory != MAP_FAILED, "mmap");
    madvise(memory, pages * PAGE, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < pages; i++)
        fill(i, kind);
}

/* Reads, and tells the compiler that somebody needs it. */
static void touch(size_t from, size_t count, size_t step)
{
    for (size_t i = from; i < pages && count; i += step, count--)
        (void)*(volatile char *)(memory + i * PAGE);
}

static void peek(size_t from, size_t count)
{
    char byte;
    struct iovec to = {&byte, 1};
    for (size_t i = from; i < from + count && i < pages; i++) {
        struct iovec it = {memory + i * PAGE, 1};
        require(process_vm_readv(getpid(), &to, 1, &it, 1, 0) == 1, "process_vm_readv");
    }
}

static size_t swapped(void)
{
    static uint64_t entries[1024];
    size_t found = 0;
    for (size_t i = 0; i < pages; i += 1024) {
        const size_t n = pages - i < 1024 ? pages - i : 1024;
        const off_t at = (off_t)(((uintptr_t)memory / PAGE + i) * sizeof(*entries));
        require(pread(pagemap, entries, n * sizeof(*entries), at) == (ssize_t)(n * sizeof(*entries)),
                "pagemap");
        for (size_t j = 0; j < n; j++)
            found += (entries[j] & SWAPPED) != 0;
    }
    return found;
}

/* Again, as the kernel leaves out what other CPUs have not put on its lists yet. */
static void swap_out(void)
{
    for (int tries = 0; tries < 10 && (!tries || swapped() < pages); tries++)
        require(!madvise(memory, pages * PAGE, MADV_PAGEOUT), "MADV_PAGEOUT");
}

static void answer(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("%zu %ld %ld\n", pages ? swapped() : 0, used.ru_majflt, used.ru_minflt);
    fflush(stdout);
}

int main(void)
{
    char line[128], kind[16], how[16];
    size_t a, b, c;
    pagemap = open("/proc/self/pagemap", O_RDONLY);
    require(pagemap >= 0, "/proc/self/pagemap");
    require(!mlockall(MCL_CURRENT), "mlockall");
    while (fgets(line, sizeof(line), stdin)) {
        if (sscanf(line, "map %zu %15s %15s", &a, kind, how) == 3 && a <= PAGES_MAX)
            map(a, kind, how);
        else if (!strncmp(line, "out", 3))
            swap_out();
        else if (sscanf(line, "touch %zu %zu %zu", &a, &b, &c) == 3)
            touch(a, b, c);
        else if (sscanf(line, "peek %zu %zu", &a, &b) == 2)
            peek(a, b);
        else if (!strncmp(line, "ahead", 5))
            require(!madvise(memory, pages * PAGE, MADV_WILLNEED), "MADV_WILLNEED");
        answer();
    }
    return 0;
}
