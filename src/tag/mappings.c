/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mmap() and its family, as <allium/malloc_hooks.h> calls them: whole pages, charged to the call that mapped them, until they are
 * unmapped or something else is mapped over them.
 *
 * Runs in: target. Threads: any.
 */
#include <errno.h>
#include <sys/mman.h>

#include "tag/books.h"
#include "tag/callers.h"
#include "tag/family.h"
#include "tag/keep.h"
#include "tag/ranges.h"

#define PAGE       4096u
#define PARTS_KEPT 8 /* of what is about to be unmapped; more than one is rare */

struct span {
    uintptr_t start, end;
};

/* Parts that were taken out before the kernel was asked: another thread may have the addresses as soon as it has unmapped them. */
struct parts {
    struct range part[PARTS_KEPT];
    int count;
    uint32_t account; /* of the first part; 0: there was none */
};

static struct span span_of(const void *start, size_t bytes)
{
    uintptr_t s = (uintptr_t)start & ~(uintptr_t)(PAGE - 1);
    return (struct span){s, s + ((bytes + PAGE - 1) & ~(size_t)(PAGE - 1))};
}

static void book_gone(const struct range *part)
{
    if (part->last)
        keep_gone(part->account, part->end - part->start);
    else
        keep_part_gone(part->account, part->end - part->start);
}

static bool take_first(struct span s, struct range *part)
{
    if (!ranges_any() || !keep_ours())
        return false;
    enum ranges_answer answer = ranges_take(s.start, s.end, part);
    if (answer == RANGES_BUSY)
        books_count_loss(LEDGER_LOST_LIVE);
    return answer == RANGES_DONE;
}

/* What is there is gone, with what lies there now. `unseen`: the program never said so in tagged code. */
static void bury(struct span s, bool unseen)
{
    struct range part;
    while (take_first(s, &part)) {
        book_gone(&part);
        if (unseen)
            keep_unseen(part.account);
    }
}

static void not_followed(uint32_t account)
{
    books_unseen(account);
    books_count_loss(LEDGER_LOST_LIVE);
}

static void enter(struct span s, uint32_t account)
{
    if (ranges_enter(s.start, s.end, account) == RANGES_DONE) {
        keep_made(account, s.end - s.start);
        books_show_ranges(ranges_table());
    } else {
        not_followed(account);
    }
}

static void take_all(struct span s, struct parts *p)
{
    p->count = 0;
    p->account = 0;
    while (p->count < PARTS_KEPT && take_first(s, &p->part[p->count])) {
        if (!p->count++)
            p->account = p->part[0].account;
    }
}

/* They were unmapped. What lies behind those that are kept was not taken out yet; nobody else can have mapped it. */
static void let_go(const struct parts *p, struct span s)
{
    for (int i = 0; i < p->count; i++)
        book_gone(&p->part[i]);
    if (p->count == PARTS_KEPT)
        bury(s, false);
}

/* They are there still. The last first: it may have been the last of a mapping. */
static void put_back(const struct parts *p)
{
    for (int i = p->count; i-- > 0;)
        if (ranges_put_back(&p->part[i]) != RANGES_DONE) {
            book_gone(&p->part[i]);
            not_followed(p->part[i].account);
        }
}

static void *map(struct allium_tag *tag, void *at, size_t bytes, int protection, int flags, int fd,
                 off_t from)
{
    if (tag && !allium_begin(tag))
        return MAP_FAILED;
    void *p = mmap(at, bytes, protection, flags, fd, from);
    if (p == MAP_FAILED) {
        if (tag)
            allium_failed(tag);
        return p;
    }
    struct span s = span_of(p, bytes);
    uint32_t account = tag ? keep_account(tag) : 0;
    bury(s, !(flags & MAP_FIXED));
    if (account)
        enter(s, account);
    return p;
}

TAG_EXPORT void *allium_mmap(struct allium_tag *tag, void *at, size_t bytes, int protection, int flags,
                             int fd, long from)
{
    return map(tag, at, bytes, protection, flags, fd, from);
}

TAG_EXPORT void *allium_mmap64(void *at, size_t bytes, int protection, int flags, int fd, long from)
{
    struct allium_tag *tag =
        callers_tag(__builtin_return_address(0), (const void *)allium_mmap64, "mmap\0mmap\0");
    return map(tag, at, bytes, protection, flags, fd, from);
}

TAG_EXPORT int allium_munmap(void *start, size_t bytes)
{
    struct span s = span_of(start, bytes);
    struct parts parts;
    if ((uintptr_t)start % PAGE || s.end <= s.start || !ranges_any())
        return munmap(start, bytes);
    take_all(s, &parts);
    int bad = munmap(start, bytes);
    if (bad)
        put_back(&parts);
    else
        let_go(&parts, s);
    return bad;
}

/* As realloc(): what was there is given back, and what is there now is made, in the account of who mapped it. */
TAG_EXPORT void *allium_mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(args, void *) : NULL;
    va_end(args);
    struct parts parts = {.count = 0};
    struct span before = span_of(old, old_bytes);
    if ((uintptr_t)old % PAGE == 0 && before.end > before.start)
        take_all(before, &parts);
    void *p = mremap(old, old_bytes, bytes, flags, to);
    if (p == MAP_FAILED) {
        put_back(&parts);
        return p;
    }
    if (flags & MREMAP_DONTUNMAP)
        put_back(&parts);
    else
        let_go(&parts, before);
    struct span s = span_of(p, bytes);
    bury(s, !(flags & MREMAP_FIXED));
    if (parts.account)
        enter(s, parts.account);
    return p;
}
