/* SPDX-License-Identifier: BSD-2-Clause */
/* The forms in which kernels from 3.x on, trace-cmd and perf print kmem events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collect/kernel/trace/ftrace_text.h"

static struct ftrace_text_line read_line(const char *line)
{
    struct ftrace_text_line l;
    char *copy = malloc(strlen(line) + 1); /* exactly as long: a sanitizer sees what is read behind it */
    memcpy(copy, line, strlen(line));
    ftrace_text_read(copy, strlen(line), &l);
    /* Spans are compared as offsets. */
    l.comm.at = l.comm.len ? line + (l.comm.at - copy) : "";
    l.call_site.at = l.call_site.len ? line + (l.call_site.at - copy) : "";
    l.cache.at = l.cache.len ? line + (l.cache.at - copy) : "";
    l.gfp.at = l.gfp.len ? line + (l.gfp.at - copy) : "";
    free(copy);
    return l;
}

static void assert_span(struct ftrace_text_span s, const char *want)
{
    assert_int_equal(s.len, strlen(want));
    assert_memory_equal(s.at, want, s.len);
}

static const struct {
    const char *line, *comm, *site, *cache;
    int32_t pid;
    uint32_t cpu;
    uint64_t time_ns, address, requested, allocated;
    enum ftrace_text_kind kind;
    int is_interrupt, is_kmalloc;
} lines[] = {
    /* 6.18, trace */
    {"              sh-27507   [001] .....  6982.838904: kmalloc: call_site=eventfs_set_attr+0x10d/0x140 "
     "ptr=000000001490a3ad bytes_req=60 bytes_alloc=64 gfp_flags=GFP_NOFS|__GFP_ZERO node=-1 accounted=false",
     "sh", "eventfs_set_attr+0x10d/0x140", "", 27507, 1, 6982838904000, 0x1490a3ad, 60, 64, FTRACE_TEXT_ALLOC,
     0, 1},
    /* a name with dashes, blanks and brackets, the process, an interrupt, a module */
    {" my-prog [2] x-17 (  1200) [011] d.h3. 12.000000001: kmem_cache_alloc: call_site=ext4_alloc+0x1/0x20 "
     "[ext4] "
     "ptr=0xffff888104412000 name=ext4_inode_cache bytes_req=1080 bytes_alloc=1088 gfp_flags=GFP_NOFS node=0",
     "my-prog [2] x", "ext4_alloc+0x1/0x20 [ext4]", "ext4_inode_cache", 17, 11, 12000000001,
     0xffff888104412000, 1080, 1088, FTRACE_TEXT_ALLOC, 1, 0},
    /* 3.x: four flags, an address in place of a name, a pointer without 0x */
    {"          <idle>-0     [003] d.s3  1234.567890: kfree: call_site=ffffffff81234567 ptr=ffff88003d2a1c00",
     "<idle>", "ffffffff81234567", "", 0, 3, 1234567890000, 0xffff88003d2a1c00, 0, 0, FTRACE_TEXT_FREE, 1, 1},
    /* no flags at all */
    {"  kworker/0:1-mm_-9     [000]   99.5: kmem_cache_free: call_site=a+0x2 ptr=(null)", "kworker/0:1-mm_",
     "a+0x2", "", 9, 0, 99500000000, 0, 0, 0, FTRACE_TEXT_FREE, 0, 0},
    {"  cat-1  [000] .... 1.25: kfree: call_site=a+0x2/0x9 ptr=7 and call_site=", "cat", "a+0x2/0x9", "", 1,
     0, 1250000000, 7, 0, 0, FTRACE_TEXT_FREE, 0, 1},
    {"  cat-1  [000] .... 1.25: kfree: call_site=a+0x2/0x9 ptr=(nil)", "cat", "a+0x2/0x9", "", 1, 0,
     1250000000, 0, 0, 0, FTRACE_TEXT_FREE, 0, 1},
    /* trace-cmd report */
    {"  trace-cmd-911   [001]   120.123456: kmalloc_node:         (alloc_pipe_info+0x4a) "
     "call_site=ffffffff812a "
     "ptr=0xffff8881 bytes_req=40 bytes_alloc=64 gfp_flags=GFP_KERNEL node=-1",
     "trace-cmd", "ffffffff812a", "", 911, 1, 120123456000, 0xffff8881, 40, 64, FTRACE_TEXT_ALLOC, 0, 1},
    /* perf script */
    {"            perf 27564 [000]  6983.927798:          kmem:kmalloc: call_site=sched_setaffinity+0x10c "
     "ptr=0xffff88810441a060 bytes_req=32 bytes_alloc=32 gfp_flags=GFP_KERNEL node=-1 accounted=false",
     "perf", "sched_setaffinity+0x10c", "", 27564, 0, 6983927798000, 0xffff88810441a060, 32, 32,
     FTRACE_TEXT_ALLOC, 0, 1},
    {"    Web Content 1200/1234 [002] 7.000001: kmem:kmem_cache_alloc_node: call_site=f+0x1 ptr=0x10 "
     "bytes_req=8 "
     "bytes_alloc=8 gfp_flags=0",
     "Web Content", "f+0x1", "", 1234, 2, 7000001000, 0x10, 8, 8, FTRACE_TEXT_ALLOC, 0, 0},
    /* a clock that counts ticks; Windows' newline */
    {"a-1 [000] d... 123456: kfree: call_site=f+0x1 ptr=0xff\r", "a", "f+0x1", "", 1, 0, 123456, 0xff, 0, 0,
     FTRACE_TEXT_FREE, 0, 1},
};

static void events(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        const struct ftrace_text_line l = read_line(lines[i].line);
        assert_int_equal(l.kind, lines[i].kind);
        assert_span(l.comm, lines[i].comm);
        assert_span(l.call_site, lines[i].site);
        assert_span(l.cache, lines[i].cache);
        assert_int_equal(l.pid, lines[i].pid);
        assert_int_equal(l.cpu, lines[i].cpu);
        assert_int_equal(l.time_ns, lines[i].time_ns);
        assert_int_equal(l.address, lines[i].address);
        assert_int_equal(l.requested_bytes, lines[i].requested);
        assert_int_equal(l.allocated_bytes, lines[i].allocated);
        assert_int_equal(l.is_interrupt, lines[i].is_interrupt);
        assert_int_equal(l.is_kmalloc, lines[i].is_kmalloc);
        assert_false(l.no_allocated_bytes);
    }
}

static void flags_and_processes(void **state)
{
    (void)state;
    struct ftrace_text_line l = read_line(lines[0].line);
    assert_span(l.gfp, "GFP_NOFS|__GFP_ZERO");
    assert_false(l.has_process);
    l = read_line(lines[1].line);
    assert_span(l.gfp, "GFP_NOFS");
    assert_true(l.has_process);
    assert_int_equal(l.process, 1200);
    l = read_line(lines[8].line); /* of perf, with both numbers */
    assert_span(l.gfp, "0");
    assert_int_equal(l.process, 1200);
    l = read_line(
        " a-1 (-------) [000] .... 1.0: mm_page_alloc: page=1 pfn=7 order=0 migratetype=0 gfp_flags=none");
    assert_span(l.gfp, "none");
    assert_true(l.has_process);
    assert_int_equal(l.process, 0);
    l = read_line(" a (12) [3] b-17 [000] .... 1.0: kfree: call_site=f+0x1 ptr=0x1000 gfp_flags=");
    assert_span(l.comm, "a (12) [3] b");
    assert_false(l.has_process);
    assert_int_equal(l.gfp.len, 0);
}

static void what_is_missing(void **state)
{
    (void)state;
    struct ftrace_text_line l = read_line(
        "a-1 [000] .... 1.0: kmalloc: call_site=f+0x1 ptr=(____ptrval____) bytes_req=8 bytes_alloc=8");
    assert_int_equal(l.kind, FTRACE_TEXT_ALLOC);
    assert_true(l.address_unknown);
    l = read_line(
        "a-1 [000] .... 1.0: kmalloc: call_site=f+0x1 ptr=0x1000 bytes_req=24 gfp_flags=GFP_KERNEL");
    assert_int_equal(l.kind, FTRACE_TEXT_ALLOC);
    assert_true(l.no_allocated_bytes);
    assert_int_equal(l.allocated_bytes, 24);
    static const char *const broken[] = {
        "a-1 [000] .... 1.0: kmalloc: ptr=0x1000 bytes_req=24 bytes_alloc=32",
        "a-1 [000] .... 1.0: kmalloc: call_site=f+0x1 bytes_req=24 bytes_alloc=32",
        "a-1 [000] .... 1.0: kmalloc: call_site=f+0x1 ptr=0x1000 bytes_alloc=32",
        "a-1 [000] .... 1.0: kmalloc: call_site=f+0x1 ptr=banana bytes_req=24 bytes_alloc=32",
        "a-1 [000] .... 1.0: kmalloc: call_site=f+0x1 ptr=0x1000 bytes_req=99999999999999999999999",
        "a-1 [000] .... 1.0: kfree: call_site= ptr=0x1000",
        "a-1 [000] .... 1.0: kfree:",
        "a-1 [99999999999] .... 1.0: kfree: call_site=f ptr=1",
    };
    for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++)
        assert_int_equal(read_line(broken[i]).kind, FTRACE_TEXT_BROKEN);
}

static void other_lines(void **state)
{
    (void)state;
    static const char *const others[] = {
        "",
        "# tracer: nop",
        "#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION",
        "a-1 [000] ....",
        "kmalloc: call_site=f",
        "[",
        "[]",
        "[000]",
        "a-x [000] 1.0: kfree: ptr=1",
        " =>",
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        assert_int_equal(read_line(others[i]).kind, FTRACE_TEXT_OTHER);
    static const struct {
        const char *line;
        uint64_t lost;
    } losses[] = {
        {"CPU:2 [LOST 1234 EVENTS]", 1234},
        {"CPU:2 [LOST EVENTS]", 0},
        {"CPU:3 [56 EVENTS DROPPED]", 56},
        {"CPU:3 [EVENTS DROPPED]", 0},
        {"  perf 1 [000] 1.0: PERF_RECORD_LOST lost 55", 55},
        {"# entries-in-buffer/entries-written: 228714/358156   #P:2", 129442},
    };
    for (size_t i = 0; i < sizeof(losses) / sizeof(*losses); i++) {
        const struct ftrace_text_line l = read_line(losses[i].line);
        assert_int_equal(l.kind, FTRACE_TEXT_LOST);
        assert_int_equal(l.lost, losses[i].lost);
    }
    assert_int_equal(read_line("# entries-in-buffer/entries-written: 12/12   #P:2").kind, FTRACE_TEXT_OTHER);
    struct ftrace_text_line l = read_line("a-1 [000] .... 1.0: sched_switch: prev_comm=kmalloc: prev_pid=1");
    assert_int_equal(l.kind, FTRACE_TEXT_EVENT);
    /* the latency format, which is not read, is not passed over in silence */
    l = read_line("bash-1234 1d..1. 1234567us : kmalloc: call_site=f+0x1 ptr=0x1 bytes_req=8 bytes_alloc=8");
    assert_int_equal(l.kind, FTRACE_TEXT_BROKEN);
    l = read_line("   cat-1 [000]  1.0: kernel_stack:         <stack trace>");
    assert_int_equal(l.kind, FTRACE_TEXT_STACK);
    l = read_line("=> alloc_pipe_info (ffffffff81234567)");
    assert_span(l.call_site, "alloc_pipe_info");
    l = read_line("a-1 [000] .... 1.0: kfree: call_site=ffffffff816a1b7d ptr=          (null)");
    assert_int_equal(l.kind, FTRACE_TEXT_FREE);
    assert_int_equal(l.address, 0);
    l = read_line(
        "a-1 [000] 1.0: kmalloc: (f+0x4a) call_site=ffffffff812a ptr=0x8 bytes_req=8 bytes_alloc=8");
    assert_span(l.name, "f+0x4a");
    l = read_line("a-1 [000] 1.0: kfree: call_site=f+0x1/0x2 [ext4 1f2e3d] ptr=0x8");
    assert_span(l.call_site, "f+0x1/0x2 [ext4 1f2e3d]");
    l = read_line("a-1 [000] 30000000000: kfree: call_site=f ptr=0x8");
    assert_true(l.is_ticks);
    l = read_line("   bash-12 [001] .....  12.000001: <stack trace>");
    assert_int_equal(l.kind, FTRACE_TEXT_STACK);
    assert_int_equal(l.pid, 12);
    l = read_line(" => alloc_pipe_info+0x4a/0x1c0");
    assert_int_equal(l.kind, FTRACE_TEXT_CALLER);
    assert_span(l.call_site, "alloc_pipe_info+0x4a/0x1c0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events),
        cmocka_unit_test(flags_and_processes),
        cmocka_unit_test(what_is_missing),
        cmocka_unit_test(other_lines),
    };
    return cmocka_run_group_tests_name("ftrace_text", tests, NULL, NULL);
}
