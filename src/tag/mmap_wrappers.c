/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The replacements of mmap(), munmap() and mremap() in <allium/malloc_hooks.h>. Whole pages are charged to the call
 * that mapped them, until they are unmapped or another mapping replaces them.
 *
 * Runs in: target. Threads: any.
 */
#include <errno.h>
#include <sys/mman.h>

#include "tag/callsite_tags.h"
#include "tag/libc_wrappers.h"
#include "tag/mmap_ranges.h"
#include "tag/tag_internal.h"
#include "tag/tag_ledger.h"

#define PAGE 4096u

struct span {
    uintptr_t start, end;
};

static struct span span_of(const void *start, size_t bytes)
{
    uintptr_t s = (uintptr_t)start & ~(uintptr_t)(PAGE - 1);
    return (struct span){s, s + ((bytes + PAGE - 1) & ~(size_t)(PAGE - 1))};
}

static void count_part(uint32_t account, uint64_t bytes, bool last)
{
    if (last)
        tag_released(account, bytes);
    else
        tag_released_part(account, bytes);
}

static void count_unseen_part(uint32_t account, uint64_t bytes, bool last)
{
    count_part(account, bytes, last);
    tag_released_unseen(account);
}

static void not_followed(uint32_t account)
{
    tag_ledger_count_unseen_free(account);
    tag_ledger_count_loss(LEDGER_LOST_TAGGED);
}

static void take(struct span s, struct mmap_ranges_taken *p)
{
    *p = (struct mmap_ranges_taken){0};
    if (mmap_ranges_any() && tag_ledger_attach() && mmap_ranges_take(s.start, s.end, p) == MMAP_RANGES_BUSY)
        tag_ledger_count_loss(LEDGER_LOST_TAGGED);
}

/* Calls `count` for each part that was unmapped. If `count` is NULL, no part was unmapped: enters the parts again. */
static void finish_parts(const struct mmap_ranges_taken *p, ranges_count_fn count)
{
    if (!p->first || !tag_ledger_attach())
        return;
    if (count ? !mmap_ranges_unmapped(p, count) : !mmap_ranges_put_back(p))
        not_followed(p->account);
}

static void count_unmapped(const struct mmap_ranges_taken *p)
{
    finish_parts(p, count_part);
}

/* Called if the system call has failed or has left the old mapping in place: enters the parts again. */
static void restore_parts(const struct mmap_ranges_taken *p)
{
    finish_parts(p, NULL);
}

/* Counts the ranges in `s` as unmapped, because a new mapping is there. `unseen`: code without tags had unmapped them
 * before. */
static void count_replaced(struct span s, bool unseen)
{
    struct mmap_ranges_taken p;
    take(s, &p);
    finish_parts(&p, unseen ? count_unseen_part : count_part);
}

/* Enters a new mapping, and counts it. Does nothing if a signal handler has forked since the request began: the account
 * is not in the child's ledger. */
static void enter(struct span s, uint32_t account)
{
    if (!process_has_ledger())
        return;
    if (mmap_ranges_enter(s.start, s.end, account) == MMAP_RANGES_DONE) {
        tag_allocated(account, s.end - s.start);
        tag_ledger_show_ranges(mmap_ranges_table());
    } else {
        not_followed(account);
    }
}

static void *map(struct allium_tag *tag, void *at, size_t bytes, int protection, int flags, int fd,
                 off_t from)
{
    void *p = !tag || allium_request_begin(tag) ? mmap(at, bytes, protection, flags, fd, from) : MAP_FAILED;
    struct span s = span_of(p, bytes);
    if (tag)
        tag_request_ended(tag, p == MAP_FAILED ? NULL : p, s.end - s.start);
    if (p == MAP_FAILED) {
        if (tag)
            allium_failed(tag);
        return p;
    }
    uint32_t account = tag ? tag_account(tag) : 0;
    count_replaced(s, !(flags & MAP_FIXED));
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
        callsite_tag(__builtin_return_address(0), (const void *)allium_mmap64, "mmap\0mmap\0");
    return map(tag, at, bytes, protection, flags, fd, from);
}

TAG_EXPORT int allium_munmap(void *start, size_t bytes)
{
    struct span s = span_of(start, bytes);
    struct mmap_ranges_taken parts;
    if ((uintptr_t)start % PAGE || s.end <= s.start || !mmap_ranges_any())
        return munmap(start, bytes);
    take(s, &parts);
    int bad = munmap(start, bytes);
    if (bad)
        restore_parts(&parts);
    else
        count_unmapped(&parts);
    return bad;
}

/* Counts like realloc(): the old mapping as freed, unless it stays; the new one for the account of the old one. */
TAG_EXPORT void *allium_mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(args, void *) : NULL;
    va_end(args);
    struct mmap_ranges_taken parts = {0};
    struct span before = span_of(old, old_bytes);
    if ((uintptr_t)old % PAGE == 0 && before.end > before.start)
        take(before, &parts);
    void *p = mremap(old, old_bytes, bytes, flags, to);
    if (p == MAP_FAILED) {
        restore_parts(&parts);
        return p;
    }
    if (flags & MREMAP_DONTUNMAP)
        restore_parts(&parts);
    else
        count_unmapped(&parts);
    struct span s = span_of(p, bytes);
    count_replaced(s, !(flags & MREMAP_FIXED));
    if (parts.account)
        enter(s, parts.account);
    return p;
}
