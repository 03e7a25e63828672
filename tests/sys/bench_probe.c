/* SPDX-License-Identifier: BSD-2-Clause */
/* src/bench/kernel: each sink at each kind of event sees every event of its process, loses what it says, and leaves
 * nothing behind. Needs root. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/read_file.h"
#include "bench/kernel/kernel_probe.h"
#include "collect/kernel/private_mount.h"

/* The instruction that a probe replaces comes first. A uprobe on another one than a nop or a push is stepped. */
#define SITE(name, code)                                                                                     \
    void name(void);                                                                                         \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" code "\n.size " #name        \
            ", . - " #name);
SITE(site_nop, "nop\nret")
SITE(site_push, "push %rbp\npop %rbp\nret")
SITE(site_stepped, "test %rdi, %rdi\nret")

static const struct target {
    const char *name;
    enum kernel_probe_kind kind;
    void (*site)(void);
} targets[] = {
    {"nop", KERNEL_PROBE_ENTRY, site_nop},
    {"push", KERNEL_PROBE_ENTRY, site_push},
    {"stepped", KERNEL_PROBE_ENTRY, site_stepped},
    {"return", KERNEL_PROBE_RETURN, site_push},
    {"call", KERNEL_PROBE_CALL, NULL},
};
#define TARGETS (sizeof(targets) / sizeof(*targets))

/* ---- a process that makes events ---- */

struct maker {
    pid_t pid;
    int ask, answer;
};

static void make_events(const struct target *t, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (t->site)
            t->site();
        else
            syscall(SYS_getppid);
}

static struct maker start(const struct target *t)
{
    int to[2], from[2];
    assert_int_equal(pipe(to), 0);
    assert_int_equal(pipe(from), 0);
    const pid_t pid = fork();
    if (!pid) {
        uint32_t n;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(to[1]);
        while (read(to[0], &n, sizeof(n)) == sizeof(n)) {
            make_events(t, n);
            if (write(from[1], &n, sizeof(n)) != sizeof(n))
                break;
        }
        _exit(0);
    }
    close(to[0]);
    close(from[1]);
    return (struct maker){pid, to[1], from[0]};
}

static void make(const struct maker *m, uint32_t n)
{
    uint32_t back = 0;
    assert_int_equal(write(m->ask, &n, sizeof(n)), sizeof(n));
    assert_int_equal(read(m->answer, &back, sizeof(back)), sizeof(back));
    assert_int_equal(back, n);
}

static void stop(const struct maker *m)
{
    close(m->ask);
    close(m->answer);
    kill(m->pid, SIGKILL); /* processes that were started later keep its pipe open */
    waitpid(m->pid, NULL, 0);
}

/* ---- the place in our file ---- */

static uint64_t offset_of(const void *address)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    uint64_t found = 0;
    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps)) {
        unsigned long start, end, offset;
        if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && (uintptr_t)address >= start &&
            (uintptr_t)address < end)
            found = (uintptr_t)address - start + offset;
    }
    fclose(maps);
    assert_true(found);
    return found;
}

static char own_path[512];

static struct kernel_probe_target target_of(const struct target *t, pid_t pid)
{
    return (struct kernel_probe_target){.kind = t->kind,
                                        .pid = pid,
                                        .file = own_path,
                                        .offset = t->site ? offset_of((const void *)t->site) : 0};
}

/* ---- tests ---- */

static bool is_left(const char *path, const char *text)
{
    struct buf b = BUF_INIT;
    const int tracefs = private_mount("tracefs");
    assert_true(tracefs >= 0);
    file_read_at(tracefs, path, 1 << 20, &b);
    const bool found = strstr(buf_str(&b), text) != NULL;
    close(tracefs);
    buf_release(&b);
    return found;
}

/* Three turns, of which the middle one makes no events. */
static void check_turns(const struct kernel_probe_sink *sink, const struct target *t)
{
    const struct maker m = start(t), other = start(t);
    const struct kernel_probe_target target = target_of(t, m.pid);
    struct kernel_probe p;
    struct kernel_probe_counts counts;
    struct error e = {""};
    print_message("# %s at %s\n", sink->name, t->name);
    const int bad = kernel_probe_open(&p, sink, &target, &e);
    if (bad)
        print_message("# %s\n", e.text);
    assert_int_equal(bad, 0);
    for (uint32_t turn = 0, n = 1000; turn < 3; turn++, n = turn == 1 ? 0 : 12345) {
        make(&m, n);
        make(&other, 100); /* of another process: none of them counts */
        assert_int_equal(kernel_probe_read(&p, &counts), 0);
        assert_int_equal(counts.seen, sink->knows_hits ? n : 0);
        assert_int_equal(counts.lost, 0);
    }
    kernel_probe_close(&p);
    make(&m, 10); /* the instruction is as it was */
    stop(&m);
    stop(&other);
}

static void every_sink_sees_each_event_of_its_process(void **state)
{
    (void)state;
    for (const struct kernel_probe_sink *sink = kernel_probe_sinks; sink->name; sink++)
        for (size_t t = 0; t < TARGETS; t++)
            check_turns(sink, &targets[t]);
    assert_false(is_left("uprobe_events", "allium_bench_"));
}

/* More than any of the buffers holds. */
static void what_a_full_buffer_loses_is_counted(void **state)
{
    static const uint32_t n = 400000;
    const struct target *t = &targets[4];
    (void)state;
    for (const struct kernel_probe_sink *sink = kernel_probe_sinks; sink->name; sink++) {
        const struct maker m = start(t);
        const struct kernel_probe_target target = target_of(t, m.pid);
        struct kernel_probe p;
        struct kernel_probe_counts counts, later;
        assert_int_equal(kernel_probe_open(&p, sink, &target, NULL), 0);
        make(&m, n);
        assert_int_equal(kernel_probe_read(&p, &counts), 0);
        make(&m, 1); /* perf tells of losses with the next record that fits */
        assert_int_equal(kernel_probe_read(&p, &later), 0);
        print_message("# %s: %lu seen, %lu lost\n", sink->name, (unsigned long)counts.seen,
                      (unsigned long)(counts.lost + later.lost));
        if (sink->knows_hits)
            assert_int_equal(counts.seen + later.seen + counts.lost + later.lost, n + 1);
        assert_true(counts.lost + later.lost > 0 || !sink->records);
        assert_true((counts.bytes > 0) == sink->records);
        kernel_probe_close(&p);
        stop(&m);
    }
}

static void a_file_that_does_not_exist_is_said(void **state)
{
    struct kernel_probe_target target = target_of(&targets[0], getpid());
    (void)state;
    target.file = "/nonexistent/program";
    for (const struct kernel_probe_sink *sink = kernel_probe_sinks; sink->name; sink++) {
        struct kernel_probe p;
        struct error e = {""};
        assert_int_equal(kernel_probe_open(&p, sink, &target, &e), -ENOENT);
        assert_non_null(strstr(e.text, strerror(ENOENT)));
    }
    assert_false(is_left("uprobe_events", "allium_bench_"));
}

static void a_killed_command_leaves_no_event(void **state)
{
    const struct kernel_probe_sink *ftrace = kernel_probe_sinks;
    struct kernel_probe_target target = target_of(&targets[0], getpid());
    char name[64];
    (void)state;
    while (strcmp(ftrace->name, "ftrace"))
        ftrace++;
    const pid_t pid = fork();
    if (!pid) {
        struct kernel_probe p;
        target.pid = getpid();
        if (kernel_probe_open(&p, ftrace, &target, NULL))
            _exit(1);
        raise(SIGKILL);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_true(WIFSIGNALED(status));
    snprintf(name, sizeof(name), "allium_bench_%d", (int)pid);
    for (int i = 0; i < 1000 && is_left("uprobe_events", name); i++)
        usleep(10000);
    assert_false(is_left("uprobe_events", name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sink_sees_each_event_of_its_process),
        cmocka_unit_test(what_a_full_buffer_loses_is_counted),
        cmocka_unit_test(a_file_that_does_not_exist_is_said),
        cmocka_unit_test(a_killed_command_leaves_no_event),
    };
    const ssize_t n = readlink("/proc/self/exe", own_path, sizeof(own_path) - 1);
    own_path[n > 0 ? n : 0] = '\0';
    return cmocka_run_group_tests_name("bench_probe", tests, NULL, NULL);
}
