/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects of known pages, touched when a line on stdin says so: "WHAT FIRST PAGES", of large_object, or of
 * middle_objects one page each; answers "done" and a number. The pages of large_object are of 4 KiB, and lie whole in
 * it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE   4096ul
#define LARGE  1000ul
#define MIDDLE 100
#define SMALL  64

static char *large, *mapped, *unmapped, *middle[MIDDLE], *volatile neighbours[SMALL][2];

static char *large_object(void)
{
    char *object = malloc((LARGE + 1) * PAGE);
    char *page = (char *)(((uintptr_t)object + PAGE - 1) & ~(PAGE - 1));
    madvise(page, LARGE * PAGE, MADV_NOHUGEPAGE);
    return page;
}

/* Their third page: the first has words of the allocator's. */
static void middle_objects(void)
{
    for (int i = 0; i < MIDDLE; i++)
        middle[i] = (char *)(((uintptr_t)malloc(4 * PAGE) + 3 * PAGE - 1) & ~(PAGE - 1));
}

static void *first_neighbour(void)
{
    return malloc(1000);
}

static void *second_neighbour(void)
{
    return malloc(1000);
}

static void two_by_two(void)
{
    for (int i = 0; i < SMALL; i++) {
        neighbours[i][0] = first_neighbour();
        neighbours[i][1] = second_neighbour();
    }
}

static __attribute__((noinline)) void touch(char *at, size_t pages)
{
    for (size_t i = 0; i < pages; i++)
        ((volatile char *)at)[i * PAGE] = (char)(i | 1);
}

static char *page_of(char *at)
{
    return (char *)((uintptr_t)at & ~(PAGE - 1));
}

/* A mapping, the third quarter of which is gone. */
static void mappings(void)
{
    mapped = mmap(NULL, 2 * LARGE * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(mapped, 2 * LARGE * PAGE, MADV_NOHUGEPAGE);
    munmap(mapped + LARGE * PAGE, LARGE / 2 * PAGE);
    unmapped = mapped + LARGE * PAGE;
}

/* How many pages they begin in. */
static size_t touch_second_neighbours(void)
{
    size_t pages = 0;
    char *last = NULL;
    for (int i = 0; i < SMALL; i++) {
        neighbours[i][1][0] = 1;
        pages += page_of(neighbours[i][1]) != last;
        last = page_of(neighbours[i][1]);
    }
    return pages;
}

/* Made, touched and freed before anybody can look. */
static void brief(size_t pages)
{
    char *object = malloc((pages + 1) * PAGE);
    touch(object, pages);
    free(object);
}

static size_t resident(char *at, size_t pages)
{
    unsigned char in[LARGE];
    size_t number = 0;
    if (mincore(at, pages * PAGE, in))
        return LARGE;
    for (size_t i = 0; i < pages; i++)
        number += in[i] & 1;
    return number;
}

/* Of the pages that are touched besides. */
static size_t resident_others(void)
{
    size_t number = 0;
    for (int i = 0; i < MIDDLE; i++)
        number += resident(middle[i], 1);
    for (int i = 0; i < SMALL; i++)
        number += resident(page_of(neighbours[i][1]), 1);
    return number;
}

int main(void)
{
    char line[200], what[20];
    size_t first, pages;
    large = large_object();
    middle_objects();
    two_by_two();
    mappings();
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) && sscanf(line, "%19s %zu %zu", what, &first, &pages) == 3) {
        int good = 1;
        size_t number = 0;
        if (!strcmp(what, "large"))
            touch(large + first * PAGE, pages);
        else if (!strcmp(what, "middle"))
            for (size_t i = 0; i < pages; i++)
                touch(middle[first + i], 1);
        else if (!strcmp(what, "kernel")) {
            int fd = open("/dev/zero", O_RDONLY);
            good = read(fd, large + first * PAGE, pages * PAGE) == (ssize_t)(pages * PAGE);
            close(fd);
        } else if (!strcmp(what, "neighbours"))
            number = touch_second_neighbours();
        else if (!strcmp(what, "out"))
            good = !madvise(large + first * PAGE, pages * PAGE, MADV_PAGEOUT);
        else if (!strcmp(what, "mapped"))
            touch(mapped + first * PAGE, pages);
        else if (!strcmp(what, "again")) /* where a tagged mapping was, without a tag */
            good = (long)(unmapped = (char *)syscall(
                              SYS_mmap, unmapped, LARGE / 2 * PAGE, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0)) > 0 &&
                   (touch(unmapped, LARGE / 2), 1);
        else if (!strcmp(what, "resident"))
            number = resident(large + first * PAGE, pages) + resident_others();
        else if (!strcmp(what, "brief"))
            brief(pages);
        else
            good = 0;
        printf("%s %zu\n", good ? "done" : "failed", number);
        fflush(stdout);
    }
    return 0;
}
