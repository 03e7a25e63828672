/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/collect/kernel/trace/trace_reader: pages of several CPUs, made here and kept in files, whose records come in the
 * order of their times; what is missing or not in order. The live buffers are read by tests/sys/record.py.
 */
#include "test_kernel.h"

#include "collect/kernel/trace/trace_reader.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_BYTES   4096u
#define HEADER_BYTES 16u
#define LOST         (1u << 31)
#define STORED       (1u << 30)

/* A file of pages; each record is one word. */
struct file {
    int fd;
    uint64_t bytes;
};

static struct file new_file(void)
{
    const struct file f = {.fd = memfd_create("pages", MFD_CLOEXEC)};
    assert_true(f.fd >= 0);
    return f;
}

/* Adds a page whose records are at these times, which begin with that of the page. Their words are the times, too. */
static void put_page(struct file *f, uint32_t flags, const uint32_t *times, size_t n)
{
    uint8_t page[PAGE_BYTES] = {0};
    uint32_t used = 0, lost = 7;
    const uint64_t begin = n ? times[0] : 0;
    for (size_t k = 0; k < n; k++) {
        const uint32_t header = 1u | (k ? times[k] - times[k - 1] : 0) << 5;
        memcpy(page + HEADER_BYTES + used, &header, sizeof(header));
        memcpy(page + HEADER_BYTES + used + 4, &times[k], sizeof(times[k]));
        used += 8;
    }
    const uint32_t commit = used | flags;
    memcpy(page, &begin, sizeof(begin));
    memcpy(page + 8, &commit, sizeof(commit));
    if (flags & STORED)
        memcpy(page + HEADER_BYTES + used, &lost, sizeof(lost));
    assert_int_equal(pwrite(f->fd, page, sizeof(page), (off_t)f->bytes), sizeof(page));
    f->bytes += sizeof(page);
}

#define PUT(f, flags, ...)                                                                                   \
    put_page((f), (flags), (const uint32_t[]){__VA_ARGS__},                                                  \
             sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

struct seen {
    struct trace_reader *reader;
    uint32_t times[8192], cpus[8192];
    size_t n;
    uint32_t peeked[64]; /* behind the first record */
    size_t n_peeked;
};

static void take(void *arg, const struct trace_record *r, uint32_t cpu)
{
    struct seen *s = arg;
    struct trace_record other;
    uint32_t word;
    assert_int_equal(r->bytes, 4);
    memcpy(&word, r->data, sizeof(word));
    assert_int_equal(word, r->time);
    struct trace_peek peek = trace_reader_peek(s->reader);
    while (!s->n && s->n_peeked < 64 && trace_peek_next(s->reader, &peek, &other))
        s->peeked[s->n_peeked++] = (uint32_t)other.time;
    s->times[s->n] = word;
    s->cpus[s->n++] = cpu;
}

/* Reads the files as those of the CPUs 3, 4 ... Returns what trace_reader_step() does. */
static int read_files(const struct file *files, size_t n, struct seen *s, struct trace_reader_counts *counts)
{
    struct trace_kept_pages pages[4];
    struct buf text = recorded("header_page-6.18.format");
    memset(s, 0, sizeof(*s));
    for (size_t k = 0; k < n; k++)
        pages[k] = (struct trace_kept_pages){(uint32_t)k + 3, files[k].fd, 0, files[k].bytes};
    assert_int_equal(trace_reader_open_kept(&s->reader, buf_str(&text), pages, n, NULL), 0);
    int bad = trace_reader_step(s->reader, true, take, s);
    *counts = *trace_reader_counts(s->reader);
    trace_reader_close(s->reader);
    buf_release(&text);
    for (size_t k = 0; k < n; k++)
        close(files[k].fd);
    return bad;
}

static void order(void **state)
{
    struct seen s;
    struct trace_reader_counts n;
    struct file f[] = {new_file(), new_file(), new_file()};
    (void)state;
    PUT(&f[0], 0, 10, 40, 50);
    PUT(&f[0], 0, 60);
    PUT(&f[1], 0, 20, 50, 70);
    assert_int_equal(read_files(f, 3, &s, &n), 0);
    const uint32_t times[] = {10, 20, 40, 50, 50, 60, 70}, cpus[] = {3, 4, 3, 3, 4, 3, 4};
    assert_int_equal(s.n, 7);
    assert_memory_equal(s.times, times, sizeof(times));
    assert_memory_equal(s.cpus, cpus, sizeof(cpus));
    assert_int_equal(n.records, 7);
    assert_int_equal(n.bytes, 3 * PAGE_BYTES);
    assert_int_equal(n.late + n.broken_pages + n.lost + n.lost_unknown, 0);
    /* what follows the first record on its CPU, also on the next page */
    const uint32_t peeked[] = {40, 50, 60};
    assert_int_equal(s.n_peeked, 3);
    assert_memory_equal(s.peeked, peeked, sizeof(peeked));
}

static void many_pages(void **state)
{
    struct seen s;
    struct trace_reader_counts n;
    struct file f[] = {new_file(), new_file()};
    (void)state;
    for (uint32_t k = 0; k < 4000; k++)
        PUT(&f[k % 2], 0, k + 1);
    assert_int_equal(read_files(f, 2, &s, &n), 0);
    assert_int_equal(s.n, 4000);
    for (uint32_t k = 0; k < 4000; k++)
        assert_int_equal(s.times[k], k + 1);
    assert_true(s.n_peeked >= 15 && s.n_peeked < 64); /* not the whole file is held */
}

static void losses(void **state)
{
    struct seen s;
    struct trace_reader_counts n;
    struct file f[] = {new_file()};
    (void)state;
    PUT(&f[0], 0, 10);
    PUT(&f[0], LOST, 20);
    PUT(&f[0], LOST | STORED, 30);
    put_page(&f[0], 0, NULL, 0);
    PUT(&f[0], LOST | STORED, 40);
    assert_int_equal(read_files(f, 1, &s, &n), 0);
    assert_int_equal(s.n, 4);
    assert_int_equal(n.lost, 14);
    assert_int_equal(n.lost_unknown, 1);
}

static void damage(void **state)
{
    struct seen s;
    struct trace_reader_counts n;
    struct file shuffled[] = {new_file(), new_file()}, cut[] = {new_file()}, broken[] = {new_file()};
    const uint32_t too_long = 28u;
    (void)state;
    PUT(&shuffled[0], 0, 10);
    PUT(&shuffled[0], 0, 30);
    PUT(&shuffled[0], 0, 20);
    PUT(&shuffled[1], 0, 15);
    PUT(&shuffled[1], 0, 50);
    assert_int_equal(read_files(shuffled, 2, &s, &n), -EBADMSG);
    assert_int_equal(s.n, 4); /* 10, 15, 30, 50: what is in order, and the other CPU */
    assert_int_equal(s.times[3], 50);

    PUT(&cut[0], 0, 10);
    PUT(&cut[0], 0, 20);
    cut[0].bytes -= 100;
    assert_int_equal(read_files(cut, 1, &s, &n), -EBADMSG);
    assert_int_equal(s.n, 1);

    PUT(&broken[0], 0, 10, 20);
    PUT(&broken[0], 0, 30);
    assert_int_equal(pwrite(broken[0].fd, &too_long, 4, HEADER_BYTES + 8),
                     4); /* the second record's header */
    assert_int_equal(read_files(broken, 1, &s, &n), 0);
    assert_int_equal(s.n, 2);
    assert_int_equal(n.broken_pages, 1);
}

static void layout(void **state)
{
    struct trace_reader *r;
    struct error e = {""};
    (void)state;
    assert_int_equal(trace_reader_open_kept(&r, "no layout", NULL, 0, &e), -EPROTO);
    assert_null(r);
    assert_non_null(strstr(e.text, "header_page"));
    trace_reader_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST("records of all CPUs come in the order of their times", order),
        TEST("a file is read page by page", many_pages),
        TEST("lost events are counted, or known to be some", losses),
        TEST("pages that are shuffled, cut or broken are noticed, and the rest is given", damage),
        TEST("a layout that is not known is refused", layout),
    };
    return cmocka_run_group_tests_name("trace_reader", tests, NULL, NULL);
}
