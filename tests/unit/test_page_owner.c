/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of page_owner, in the forms of several kernels, and what page_owner_sort makes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "collect/kernel/page_owner.h"

/* Returns how many blocks there are; `last` is called with each one. */
static unsigned read_all(struct page_owner *p, const char *text,
                         void (*check)(const struct page_owner_block *b))
{
    unsigned n = 0;
    for (const char *line = text; *line; line += *line == '\n') {
        const size_t len = strcspn(line, "\n");
        if (page_owner_line(p, line, len) && ++n)
            check(&p->block);
        line += len;
    }
    if (page_owner_end(p) && ++n)
        check(&p->block);
    return n;
}

static void is_of_6_12(const struct page_owner_block *b)
{
    assert_int_equal(b->times, 1);
    assert_int_equal(b->order, 3);
    assert_int_equal(b->gfp, 0xd20c0);
    assert_string_equal(buf_str(&b->gfp_names), "__GFP_IO|__GFP_FS|__GFP_NOWARN");
    assert_int_equal(b->pid, 87);
    assert_int_equal(b->tgid, 86);
    assert_string_equal(b->comm, "a (b), ts 7 ns");
    assert_int_equal(b->time_ns, 2593482160);
    assert_true(b->freed_ns == PAGE_OWNER_UNKNOWN);
    assert_string_equal(b->type, "Unmovable");
    assert_string_equal(b->block_type, "Movable");
    assert_true(b->is_slab);
    assert_string_equal(buf_str(&b->stack), "post_alloc_hook+0x31/0xd0\next4_new+0x1/0x20 [ext4]");
}

static void linux_6_12_tells_process_program_and_time(void **state)
{
    (void)state;
    struct page_owner p = {.times = 0};
    static const char text[] = "Page allocated via order 3, mask 0xd20c0(__GFP_IO|__GFP_FS|__GFP_NOWARN), "
                               "pid 87, tgid 86 (a (b), ts 7 ns), "
                               "ts 2593482160 ns\n"
                               "PFN 0x1000 type Unmovable Block 8 type Movable Flags 0x0(zone=0)\n"
                               " post_alloc_hook+0x31/0xd0\n ext4_new+0x1/0x20 [ext4]\n"
                               "Page has been migrated, last migrate reason: compaction\n"
                               "Slab cache page\n\n";
    assert_true(page_owner_is_text(text, sizeof(text) - 1));
    assert_int_equal(read_all(&p, text, is_of_6_12), 1);
    assert_int_equal(p.broken, 0);
    page_owner_release(&p);
}

static void is_of_6_1(const struct page_owner_block *b)
{
    assert_int_equal(b->freed_ns, 55);
    assert_string_equal(b->comm, "swapper/0");
    assert_true(b->is_slab);
}

static void linux_6_1_tells_when_pages_were_free_before(void **state)
{
    (void)state;
    struct page_owner p = {.times = 0};
    assert_int_equal(
        read_all(&p,
                 "Page allocated via order 0, mask 0xcc0(GFP_KERNEL), pid 1, tgid 1 (swapper/0), ts 12 ns, "
                 "free_ts 55 ns\n"
                 "PFN 0x8 type Unmovable Block 0 type Unmovable Flags 0x200(slab|node=0|zone=0)\n"
                 " f+0x1/0x2\n 0xffffffffc02150c2\nCharged (via objcg) to offline memcg a/b\n\n",
                 is_of_6_1),
        1);
    assert_int_equal(p.broken, 0);
    page_owner_release(&p);
}

static void is_of_5_10(const struct page_owner_block *b)
{
    assert_int_equal(b->pid, 1);
    assert_true(b->tgid == PAGE_OWNER_UNKNOWN && b->freed_ns == PAGE_OWNER_UNKNOWN);
    assert_string_equal(b->comm, "");
    assert_int_equal(b->time_ns, 12);
    assert_false(b->is_slab);
}

static void linux_5_10_tells_only_the_thread(void **state)
{
    (void)state;
    struct page_owner p = {.times = 0};
    assert_int_equal(read_all(&p,
                              "Page allocated via order 0, mask 0x0(), pid 1, ts 12 ns\n"
                              "PFN 256 type Unmovable Block 0 type Unmovable Flags 0xfffe0000000200(slabs)\n"
                              " f+0x1/0x2\n\n",
                              is_of_5_10),
                     1);
    assert_int_equal(p.broken, 0);
    page_owner_release(&p);
}

static unsigned long long all;

static void add(const struct page_owner_block *b)
{
    all += b->times << b->order;
}

static void page_owner_sort_says_how_many_there_are(void **state)
{
    (void)state;
    struct page_owner p = {.times = 0};
    static const char text[] =
        "3 times, 6 pages, allocated by kernel:\n"
        "Page allocated via order 1, mask 0xcc0(GFP_KERNEL), pid 1, tgid 1 (a), ts 1 ns\n"
        "PFN 0x8 type Unmovable Block 0 type Unmovable Flags 0x0()\n f+0x1/0x2\n\n\n"
        "1 times, 1 pages:\n"
        "Page allocated via order 0, mask 0xcc0(GFP_KERNEL), pid 1, tgid 1 (a), ts 1 ns\n"
        "PFN 0x8 type Unmovable Block 0 type Unmovable Flags 0x0()\n f+0x1/0x2\n";
    all = 0;
    assert_true(page_owner_is_text(text, sizeof(text) - 1));
    assert_int_equal(read_all(&p, text, add), 2);
    assert_int_equal(all, 7);
    assert_int_equal(p.broken, 0);
    page_owner_release(&p);
}

static void broken_blocks_are_counted(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "Page allocated via order x, mask 0x1(A), pid 1\n\n",
        "Page allocated via order 0, mask 0x1(A), pid 1\n\n",
        "Page allocated via order 0, mask 0x1(A), pid 1, tgid 1 (a, ts 1 ns\n\n",
        "Page allocated via order 0, mask 0x1(A), pid 1, ts 1 ns\nPFN 0x8 kind Unmovable\n\n",
        "something else\n"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct page_owner p = {.times = 0};
        assert_int_equal(read_all(&p, texts[i], add), 0);
        assert_int_equal(p.broken, 1);
        page_owner_release(&p);
    }
    assert_false(page_owner_is_text("Pages", 5));
    assert_false(page_owner_is_text("", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linux_6_12_tells_process_program_and_time),
        cmocka_unit_test(linux_6_1_tells_when_pages_were_free_before),
        cmocka_unit_test(linux_5_10_tells_only_the_thread),
        cmocka_unit_test(page_owner_sort_says_how_many_there_are),
        cmocka_unit_test(broken_blocks_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
