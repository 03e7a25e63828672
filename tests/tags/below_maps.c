/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mmap(), munmap() and mremap() of anonymous memory, in a window of address space that is ours alone, with a book of
 * each page: is it there, and which mapping was it when tagged code last had to do with it? Addresses are given again
 * soon, anywhere.
 *
 * A page that is not there is mapped all the same, without access: nobody else ever gets an address of the window.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "below_own.h"

#define PAGES     6144u
#define PAGE      ((size_t)BELOW_PAGE)
#define READ      (PROT_READ | PROT_WRITE)
#define ANONYMOUS (MAP_PRIVATE | MAP_ANONYMOUS)
#define TRIES     4

struct mapping {
    uint32_t pages, epoch;
    int place;
};

static char *window;
static bool there[PAGES];
static uint32_t mapping_of[PAGES]; /* by what tagged code did; 0: none */
static uint32_t part_of[PAGES];    /* pages side by side of the same number are one part to the library */
static struct mapping mappings[PAGES + 1];
static uint32_t parts;

struct pages {
    uint32_t from, to;
};

static void *raw(void *at, size_t bytes, int protection, int flags, int fd, off_t from)
{
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, from);
}

static bool in_window(const void *at)
{
    return window && (size_t)((const char *)at - window) < PAGES * PAGE;
}

static bool pages_of(const void *at, size_t bytes, struct pages *p)
{
    size_t offset = (size_t)((const char *)at - window), n = (bytes + PAGE - 1) / PAGE;
    *p = (struct pages){(uint32_t)(offset / PAGE), (uint32_t)(offset / PAGE + n)};
    return offset % PAGE == 0 && n && p->to <= PAGES && bytes <= PAGES * PAGE;
}

static struct mapping *known(uint32_t page)
{
    struct mapping *m = &mappings[mapping_of[page]];
    return mapping_of[page] && m->epoch == below_epoch ? m : NULL;
}

/* Tagged code learns that what it knew there is gone; -> of how many parts. */
static uint32_t forget(struct pages p)
{
    uint32_t n = 0, last = 0;
    for (uint32_t i = p.from; i < p.to; i++) {
        struct mapping *m = known(i);
        n += m && part_of[i] != last;
        last = m ? part_of[i] : 0;
        if (m) {
            below_counts->rows[m->place].gone_bytes += PAGE;
            below_counts->rows[m->place].gone_calls += !--m->pages;
        } else if (mapping_of[i]) {
            mappings[mapping_of[i]].pages--; /* of the parent's */
        }
        mapping_of[i] = 0;
    }
    return n;
}

static void new_mapping(struct pages p, int place, bool counted)
{
    uint32_t number = 1;
    while (mappings[number].pages)
        number++;
    mappings[number] = (struct mapping){p.to - p.from, below_epoch, place};
    parts++;
    for (uint32_t i = p.from; i < p.to; i++) {
        mapping_of[i] = number;
        part_of[i] = parts;
    }
    if (counted) {
        below_counts->rows[place].made_calls++;
        below_counts->rows[place].made_bytes += (p.to - p.from) * PAGE;
    }
}

static void set_there(struct pages p, bool is)
{
    void *at = window + p.from * PAGE;
    if (raw(at, (p.to - p.from) * PAGE, is ? READ : PROT_NONE,
            ANONYMOUS | MAP_FIXED | (is ? 0 : MAP_NORESERVE), -1, 0) != at)
        below_die("below: a page of the window cannot be mapped\n");
    memset(there + p.from, is, p.to - p.from);
}

static bool all_there(struct pages p, bool are)
{
    for (uint32_t i = p.from; i < p.to; i++)
        if (there[i] != are)
            return false;
    return true;
}

static bool find_room(uint32_t n, struct pages *p)
{
    for (int try = 0; n <= PAGES / 4 && try < TRIES; try++) {
        uint32_t from = below_draw(PAGES - n);
        for (uint32_t i = from, run = 0; i < PAGES; i++) {
            run = there[i] ? 0 : run + 1;
            if (run == n) {
                *p = (struct pages){i + 1 - n, i + 1};
                return true;
            }
        }
    }
    return false;
}

static void *refused(int place, int error)
{
    if (place != BELOW_FOREIGN)
        below_counts->rows[below_charged(place)].failed++;
    errno = error;
    return MAP_FAILED;
}

static void *map_pages(void *at, size_t bytes, int flags)
{
    struct pages p;
    int place = below_place;
    if (!bytes || (flags & MAP_FIXED && !pages_of(at, bytes, &p)))
        return refused(place, EINVAL);
    if (below_draws_failure(place))
        return refused(place, ENOMEM);
    if (!(flags & MAP_FIXED) && !find_room((uint32_t)((bytes + PAGE - 1) / PAGE), &p))
        return refused(place, ENOMEM);
    set_there(p, true);
    if (place == BELOW_FOREIGN)
        return window + p.from * PAGE;
    uint32_t gone = forget(p);
    if (!(flags & MAP_FIXED))
        below_counts->unseen += gone;
    if (below_charged(place) != BELOW_FOREIGN)
        new_mapping(p, place, !below_skipped(place));
    return window + p.from * PAGE;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t from)
{
    sigset_t old;
    if (protection != READ || (flags & ~MAP_FIXED) != ANONYMOUS || (flags & MAP_FIXED && !in_window(at)))
        return raw(at, bytes, protection, flags, fd, from);
    below_enter(&old);
    if (!window &&
        (window = raw(NULL, PAGES * PAGE, PROT_NONE, ANONYMOUS | MAP_NORESERVE, -1, 0)) == MAP_FAILED)
        below_die("below: no window\n");
    void *p = map_pages(at, bytes, flags);
    below_leave(&old);
    return p;
}

void *mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t from)
{
    return mmap(at, bytes, protection, flags, fd, from);
}

/* It stays as it is, and what the library had taken out of its own book is a part for itself now. */
static void *unchanged(struct pages p, int error)
{
    uint32_t last = 0;
    for (uint32_t i = p.from; i < p.to && below_place != BELOW_FOREIGN; i++) {
        uint32_t part = known(i) ? part_of[i] : 0;
        parts += part && part != last;
        if (part)
            part_of[i] = parts;
        last = part;
    }
    errno = error;
    return MAP_FAILED;
}

static int unmap_pages(void *at, size_t bytes)
{
    struct pages p;
    int place = below_place;
    if (!pages_of(at, bytes, &p)) {
        errno = EINVAL;
        return -1;
    }
    if (below_draws_failure(place)) {
        unchanged(p, ENOMEM);
        return -1;
    }
    set_there(p, false);
    if (place != BELOW_FOREIGN && !below_skipped(place))
        forget(p);
    return 0;
}

int munmap(void *at, size_t bytes)
{
    sigset_t old;
    if (!in_window(at))
        return (int)syscall(SYS_munmap, at, bytes);
    below_enter(&old);
    int bad = unmap_pages(at, bytes);
    below_leave(&old);
    return bad;
}

static bool find_target(struct pages from, size_t bytes, int flags, void *to, struct pages *p)
{
    uint32_t n = (uint32_t)((bytes + PAGE - 1) / PAGE);
    *p = (struct pages){from.from, from.from + n};
    if (flags & MREMAP_FIXED)
        return pages_of(to, bytes, p) && (p->to <= from.from || p->from >= from.to);
    if (p->to <= from.to ||
        (p->to <= PAGES && below_draw(2) && all_there((struct pages){from.to, p->to}, false)))
        return true;
    return flags & MREMAP_MAYMOVE && find_room(n, p);
}

/* Who is charged with what is there now: whose the first is of what was there. */
static int first_known(struct pages p)
{
    for (uint32_t i = p.from; i < p.to; i++)
        if (known(i))
            return known(i)->place;
    return BELOW_FOREIGN;
}

static void *move_pages(struct pages from, size_t bytes, int flags, void *to)
{
    struct pages p;
    int place = below_place, whose = first_known(from);
    if (below_draws_failure(place) || !find_target(from, bytes, flags, to, &p))
        return unchanged(from, ENOMEM);
    if (!all_there(from, true))
        return unchanged(from, EFAULT);
    size_t stays = (p.to - p.from < from.to - from.from ? p.to - p.from : from.to - from.from) * PAGE;
    if (p.from == from.from) {
        if (p.to < from.to)
            set_there((struct pages){p.to, from.to}, false);
        else if (p.to > from.to)
            set_there((struct pages){from.to, p.to}, true);
    } else {
        set_there(p, true);
        memcpy(window + p.from * PAGE, window + from.from * PAGE, stays);
        set_there(from, false);
    }
    if (place == BELOW_FOREIGN)
        return window + p.from * PAGE;
    forget(from);
    uint32_t gone = forget(p);
    if (!(flags & MREMAP_FIXED))
        below_counts->unseen += gone;
    if (whose != BELOW_FOREIGN)
        new_mapping(p, whose, !below_skipped(place));
    return window + p.from * PAGE;
}

void *mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...)
{
    sigset_t mask;
    struct pages from;
    va_list args;
    va_start(args, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(args, void *) : NULL;
    va_end(args);
    if (!in_window(old) || !bytes || !pages_of(old, old_bytes, &from))
        return (void *)syscall(SYS_mremap, old, old_bytes, bytes, flags, to);
    below_enter(&mask);
    void *p = move_pages(from, bytes, flags, to);
    below_leave(&mask);
    return p;
}

void below_check_maps(void)
{
    static char text[1 << 20];
    sigset_t old;
    size_t have = 0, booked = 0, mapped = 0;
    below_enter(&old);
    int fd = (int)syscall(SYS_open, "/proc/self/maps", 0);
    for (ssize_t n; (n = read(fd, text + have, sizeof(text) - 1 - have)) > 0;)
        have += (size_t)n;
    syscall(SYS_close, fd);
    text[have] = '\0';
    for (char *at = text; *at; at = strchr(at, '\n') + 1) {
        char *end, *start = (char *)strtoul(at, &end, 16);
        char *stop = (char *)strtoul(end + 1, &end, 16);
        start = start < window ? window : start; /* the kernel may have joined it with what lies beside it */
        stop = stop > window + PAGES * PAGE ? window + PAGES * PAGE : stop;
        if (window && start < stop && end[1] == 'r')
            mapped += (size_t)(stop - start);
    }
    for (uint32_t i = 0; i < PAGES; i++)
        booked += there[i] * PAGE;
    if (booked != mapped)
        below_die("below: the kernel has other pages mapped than were booked\n");
    below_leave(&old);
}
