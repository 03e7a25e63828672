/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/collect/kernel/trace: pages of the kernel's trace buffers that are made here, record by record, and records of
 * kmem events by the formats of a kernel.
 */
#include "test_kernel.h"

#include "collect/kernel/trace/kmem_format.h"
#include "collect/kernel/trace/trace_page.h"

#include <errno.h>

#define PAGE_BYTES 4096u
#define LOST       (1u << 31)
#define STORED     (1u << 30)

struct made {
    struct trace_page_layout layout;
    uint8_t bytes[PAGE_BYTES];
    uint32_t used; /* behind the header */
};

static struct made page_at(uint64_t time)
{
    struct made m = {.used = 0};
    struct buf text = recorded("header_page-6.18.format");
    assert_int_equal(trace_page_layout_parse(&m.layout, buf_str(&text)), 0);
    buf_release(&text);
    memcpy(m.bytes + m.layout.time_at, &time, sizeof(time));
    return m;
}

static void put_word(struct made *m, uint32_t word)
{
    memcpy(m->bytes + m->layout.data_at + m->used, &word, sizeof(word));
    m->used += sizeof(word);
}

static void put_header(struct made *m, uint32_t type, uint32_t time)
{
    put_word(m, type | time << 5);
}

/* A record of so many words, each with this value. */
static void put_record(struct made *m, uint32_t words, uint32_t time, uint32_t value)
{
    put_header(m, words <= 28 ? words : 0, time);
    if (words > 28)
        put_word(m, (words + 1) * 4);
    for (uint32_t i = 0; i < words; i++)
        put_word(m, value);
}

static struct trace_page begun(struct made *m, uint32_t flags)
{
    struct trace_page p;
    uint32_t commit = m->used | flags;
    memcpy(m->bytes + m->layout.commit_at, &commit, sizeof(commit));
    assert_int_equal(trace_page_begin(&p, m->bytes, sizeof(m->bytes), &m->layout), 0);
    return p;
}

static void assert_record(struct trace_page *p, uint64_t time, uint32_t words, uint32_t value)
{
    struct trace_record r;
    uint32_t first;
    assert_int_equal(trace_page_next(p, &r), 1);
    assert_int_equal(r.time, time);
    assert_int_equal(r.bytes, words * 4);
    memcpy(&first, r.data, sizeof(first));
    assert_int_equal(first, value);
}

static void assert_end(struct trace_page *p)
{
    struct trace_record r;
    assert_int_equal(trace_page_next(p, &r), 0);
    assert_int_equal(trace_page_next(p, &r), 0);
}

static void records_of_all_kinds(void **state)
{
    (void)state;
    struct made m = page_at(1000);
    put_record(&m, 1, 0, 11);
    put_record(&m, 28, 5, 12);
    put_record(&m, 40, 7, 13);
    put_header(&m, 30, 3); /* a time of more than 27 bits */
    put_word(&m, 2);
    put_record(&m, 2, 1, 14);
    put_header(&m, 29, 5); /* a discarded record of two words, whose time counts, unless it is 1 */
    put_word(&m, 4);
    put_header(&m, 29, 1);
    put_word(&m, 3 * 4);
    put_word(&m, 0);
    put_word(&m, 0);
    put_record(&m, 3, 1, 15);
    struct trace_page p = begun(&m, 0);
    assert_int_equal(p.lost, 0);
    assert_record(&p, 1000, 1, 11);
    assert_record(&p, 1005, 28, 12);
    assert_record(&p, 1012, 40, 13);
    const uint64_t extended = 1012 + 3 + (UINT64_C(2) << 27);
    assert_record(&p, extended + 1, 2, 14);
    assert_record(&p, extended + 7, 3, 15);
    assert_end(&p);
}

static void padding_ends_a_page(void **state)
{
    (void)state;
    struct made m = page_at(1);
    put_record(&m, 1, 1, 1);
    put_header(&m, 29, 0);
    put_record(&m, 1, 1, 2);
    struct trace_page p = begun(&m, 0);
    assert_record(&p, 2, 1, 1);
    assert_end(&p);
}

/* A stamp has the lower 59 bits of a time. */
static void stamps(void **state)
{
    (void)state;
    const uint64_t top = UINT64_C(3) << 59, late = (UINT64_C(1) << 59) - 2;
    struct made m = page_at(top + 5);
    put_header(&m, 31, (uint32_t)(late & ((1u << 27) - 1)));
    put_word(&m, (uint32_t)(late >> 27));
    put_record(&m, 1, 0, 1);
    put_header(&m, 31, 7); /* smaller: the lower bits have begun again */
    put_word(&m, 0);
    put_record(&m, 1, 0, 2);
    struct trace_page p = begun(&m, 0);
    assert_record(&p, top + late, 1, 1);
    assert_record(&p, top + (UINT64_C(1) << 59) + 7, 1, 2);
    assert_end(&p);
}

/* One that goes back is a jump of a clock, and not of 18 years. */
static void stamps_that_go_back(void **state)
{
    (void)state;
    struct made m = page_at(5000);
    put_header(&m, 31, 4000);
    put_word(&m, 0);
    put_record(&m, 1, 0, 1);
    struct trace_page p = begun(&m, 0);
    assert_record(&p, 4000, 1, 1);
}

static void losses(void **state)
{
    (void)state;
    struct made m = page_at(1);
    const uint64_t n = 1234567;
    put_record(&m, 1, 0, 1);
    memcpy(m.bytes + m.layout.data_at + m.used, &n, sizeof(n));
    assert_int_equal(begun(&m, LOST | STORED).lost, n);
    assert_true(begun(&m, LOST).lost == TRACE_PAGE_LOST_UNKNOWN);
}

static void what_is_no_page(void **state)
{
    (void)state;
    struct made m = page_at(1);
    struct trace_page p;
    struct trace_record r;
    assert_int_equal(trace_page_begin(&p, m.bytes, m.layout.data_at - 1, &m.layout), -EBADMSG);
    put_record(&m, 2, 0, 1);
    begun(&m, 0);
    assert_int_equal(trace_page_begin(&p, m.bytes, m.layout.data_at + 8, &m.layout), -EBADMSG);
    for (uint32_t cut = 1; cut < 12; cut++) { /* a record that reaches beyond the end */
        m.used = 12 - cut;
        p = begun(&m, 0);
        int found = trace_page_next(&p, &r);
        assert_int_equal(found, m.used < 4 ? 0 : -EBADMSG);
    }
    m.used = 0;
    put_header(&m, 0, 0);
    put_word(&m, 3); /* a length that leaves out itself */
    p = begun(&m, 0);
    assert_int_equal(trace_page_next(&p, &r), -EBADMSG);
    struct trace_page_layout l;
    assert_int_equal(trace_page_layout_parse(&l, "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"),
                     -EPROTO);
    assert_int_equal(trace_page_layout_parse(&l, ""), -EPROTO);
}

/* ---- formats ---- */

static struct kmem_format *formats(void)
{
    struct kmem_format *f = kmem_format_new();
    struct error e = {""};
    for (size_t i = 0; i < KMEM_FORMAT_REQUIRED; i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s-6.18.format", kmem_format_events[i]);
        struct buf text = recorded(name);
        assert_int_equal(kmem_format_add(f, kmem_format_events[i], buf_str(&text), text.len, &e), 0);
        buf_release(&text);
    }
    return f;
}

/* The number of an event in its format: "ID: 345". */
static uint16_t id_of(const char *event)
{
    char name[64];
    snprintf(name, sizeof(name), "%s-6.18.format", event);
    struct buf text = recorded(name);
    unsigned id = 0;
    assert_int_equal(sscanf(strstr(buf_str(&text), "ID: "), "ID: %u", &id), 1);
    buf_release(&text);
    return (uint16_t)id;
}

static void records_by_their_formats(void **state)
{
    (void)state;
    struct kmem_format *f = formats();
    struct kmem_event e;
    struct {
        uint16_t type;
        uint8_t flags, preempt;
        int32_t pid;
        uint64_t call_site, ptr;
        uint32_t name, unused;
        uint64_t requested, allocated, gfp;
        int32_t node;
        uint8_t accounted;
        char text[11];
    } alloc = {id_of("kmem_cache_alloc"),
               0x10,
               0,
               -7,
               0xffffffff81234567,
               0xffff888012345678,
               0,
               0,
               100,
               128,
               0xcc0,
               -1,
               1,
               "dentry"};
    alloc.name = (uint32_t)((char *)alloc.text - (char *)&alloc) | 7u << 16;
    assert_int_equal(kmem_format_decode(f, (uint8_t *)&alloc, sizeof(alloc), &e), 1);
    assert_int_equal(e.kind, KMEM_EVENT_ALLOC);
    assert_true(e.call_site == alloc.call_site && e.address == alloc.ptr && e.context == 0x10 && e.pid == -7);
    assert_true(e.requested_bytes == 100 && e.allocated_bytes == 128 && e.gfp == 0xcc0);
    assert_string_equal(e.cache, "dentry");
    for (uint32_t bytes = 0; bytes < sizeof(alloc) - sizeof(alloc.text) + 7; bytes++)
        assert_int_equal(kmem_format_decode(f, (uint8_t *)&alloc, bytes, &e), -EBADMSG);
    alloc.text[6] = 'x'; /* a text without an end */
    assert_int_equal(kmem_format_decode(f, (uint8_t *)&alloc, sizeof(alloc), &e), -EBADMSG);
    struct {
        uint16_t type;
        uint8_t flags, preempt;
        int32_t pid;
        uint64_t call_site, ptr;
    } freed = {id_of("kfree"), 0, 0, 42, 0xffffffff81000000, 0};
    assert_int_equal(kmem_format_decode(f, (uint8_t *)&freed, sizeof(freed), &e), 1);
    assert_true(e.kind == KMEM_EVENT_FREE && !e.address && e.pid == 42 && !e.context && !*e.cache);
    freed.type = 4095;
    assert_int_equal(kmem_format_decode(f, (uint8_t *)&freed, sizeof(freed), &e), 0);
    freed.type = 65535;
    assert_int_equal(kmem_format_decode(f, (uint8_t *)&freed, sizeof(freed), &e), 0);
    kmem_format_free(f);
}

static void stacks_by_their_format(void **state)
{
    (void)state;
    struct kmem_format *f = formats();
    struct buf text = recorded("kernel_stack-6.18.format");
    struct error e = {""};
    struct kmem_stack stack;
    struct {
        uint16_t type;
        uint8_t flags, preempt;
        int32_t pid, size, unused;
        uint64_t callers[3];
    } r = {4, 0x18, 0, 7, 3, 0, {11, 12, 13}};
    assert_int_equal(kmem_format_stack(f, (uint8_t *)&r, sizeof(r), &stack), 0); /* not known yet */
    assert_int_equal(kmem_format_add_stack(f, buf_str(&text), text.len, &e), 0);
    assert_int_equal(kmem_format_stack(f, (uint8_t *)&r, sizeof(r), &stack), 1);
    assert_true(stack.n == 3 && stack.context == 0x18 &&
                !memcmp(stack.callers, r.callers, sizeof(r.callers)));
    assert_int_equal(kmem_format_stack(f, (uint8_t *)&r, sizeof(r) - 1, &stack), 1);
    assert_int_equal(stack.n, 2); /* what is there of it */
    r.size = -1;
    assert_int_equal(kmem_format_stack(f, (uint8_t *)&r, sizeof(r), &stack), 1);
    assert_int_equal(stack.n, 3);
    assert_int_equal(kmem_format_stack(f, (uint8_t *)&r, 15, &stack), -EBADMSG);
    r.type = id_of("kfree");
    assert_int_equal(kmem_format_stack(f, (uint8_t *)&r, sizeof(r), &stack), 0);
    assert_int_equal(kmem_format_add_stack(f, "", 0, &e), -EPROTO);
    buf_release(&text);
    kmem_format_free(f);
}

static void texts_that_are_no_formats(void **state)
{
    (void)state;
    struct kmem_format *f = kmem_format_new();
    struct buf whole = recorded("kfree-6.18.format");
    char *text = buf_detach(&whole);
    struct error e = {""};
    assert_int_equal(kmem_format_add(f, "kfree", "", 0, &e), -EPROTO);
    assert_non_null(strstr(e.text, "kmem:kfree is not known"));
    assert_int_equal(kmem_format_add(f, "kmalloc", text, strlen(text), &e), -EPROTO); /* of another event */
    char *ptr = strstr(text, " ptr;");
    memcpy(ptr, " rtp;", 5);
    assert_int_equal(kmem_format_add(f, "kfree", text, strlen(text), &e),
                     -EPROTO); /* a field that is missing */
    free(text);
    kmem_format_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("records of every kind, with their times", records_of_all_kinds),
        TEST("padding ends a page", padding_ends_a_page),
        TEST("time stamps are continued above 59 bits", stamps),
        TEST("time stamps that go back", stamps_that_go_back),
        TEST("lost events are counted, or known to be some", losses),
        TEST("no record reaches beyond its page", what_is_no_page),
        TEST("records of kmem events are read by their formats", records_by_their_formats),
        TEST("stacks are read by their format, as far as they are there", stacks_by_their_format),
        TEST("what is no format is refused", texts_that_are_no_formats),
    };
    return cmocka_run_group_tests_name("trace_page", tests, NULL, NULL);
}
