/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/collect/spaces on real programs: what it says of their address spaces, after they have ended, against what they
 * read themselves from /proc/self/maps at each moment. Environment: BRIEF, BRIEF_STATIC, MAPPER, MAPPED_LIBRARY:
 * programs.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "brief.h"
#include "collect/addrspace/address_spaces.h"

#define BRIEF_RUNS 500 /* of each kind */
#define ENDED_MAX  (1 << 20)

extern char **environ;

/* Skips the test where perf events are not to be had. */
static struct sideband *open_band(unsigned ring_pages)
{
    struct sideband_options options = {.ring_pages = ring_pages};
    struct sideband *band = NULL;
    struct error why;
    int bad = sideband_open(&options, &band, &why);
    if (bad == -EACCES || bad == -EPERM || bad == -ENOSYS)
        skip();
    if (bad)
        fail_msg("%s", why.text);
    return band;
}

static pid_t spawn(char *const argv[], int output)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    posix_spawn_file_actions_init(&actions);
    if (output >= 0)
        posix_spawn_file_actions_adddup2(&actions, output, 1);
    assert_int_equal(posix_spawn(&pid, argv[0], &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

static void finish(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* ---- programs that live for a moment ---- */

static void is_program(const struct space_mapping *m, const char *path)
{
    struct stat st;
    assert_int_equal(m->kind, MAPPING_FILE);
    assert_string_equal(m->file->path, path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(m->file->inode, st.st_ino);
}

static enum mapping_kind kind_at(struct address_spaces *s, const struct brief *b, uint64_t address)
{
    struct space_mapping m;
    address_spaces_find(s, (pid_t)b->pid, b->time_ns, address, &m);
    return m.kind;
}

static void is_known(struct address_spaces *s, const struct brief *b, char *program)
{
    struct address_spaces_process p;
    struct space_mapping m;
    pid_t pid = (pid_t)b->pid;
    assert_true(address_spaces_process(s, pid, b->time_ns, &p));
    assert_string_equal(p.name, strlen(strrchr(program, '/') + 1) < 16 ? strrchr(program, '/') + 1 : p.name);
    assert_int_equal(p.parent_pid, getpid());
    assert_true(p.began_ns <= p.image_ns && p.image_ns <= b->time_ns && b->time_ns <= p.ended_ns);
    assert_true(p.complete);
    assert_true(address_spaces_find(s, pid, b->time_ns, b->code, &m));
    is_program(&m, program);
    assert_int_equal(m.protection, PROT_READ | PROT_EXEC);
    assert_true(address_spaces_find(s, pid, b->time_ns, b->library, &m));
    assert_non_null(strstr(m.file->path, strstr(program, "static") ? program : "/libc.so.6"));
    assert_int_equal(kind_at(s, b, b->heap), MAPPING_HEAP);
    assert_int_equal(kind_at(s, b, b->stack), MAPPING_STACK);
    assert_int_equal(kind_at(s, b, b->anonymous), MAPPING_ANONYMOUS);
    assert_int_equal(kind_at(s, b, 8), MAPPING_NONE);
    /* Before it was executed it was the one that forked it: us. */
    assert_false(address_spaces_find(s, pid, p.began_ns - 1, b->code, &m));
}

static void brief(void **state)
{
    (void)state;
    struct sideband *band = open_band(1024);
    /* What else ends on this machine is remembered, too: no end of ours makes room for it. */
    struct address_spaces *s = address_spaces_new(
        band, &(struct address_spaces_options){.ended_max = ENDED_MAX, .back_ns = UINT64_MAX});
    static struct brief told[2 * BRIEF_RUNS];
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    for (int i = 0; i < 2 * BRIEF_RUNS; i++) {
        char *argv[] = {getenv(i % 2 ? "BRIEF_STATIC" : "BRIEF"), NULL};
        finish(spawn(argv, pipes[1]));
        assert_int_equal(read(pipes[0], &told[i], sizeof(told[i])), sizeof(told[i]));
        if (i % 50 == 0)
            address_spaces_drain(s);
    }
    address_spaces_drain(s);
    assert_int_equal(address_spaces_counts(s).lost, 0);
    assert_int_equal(address_spaces_counts(s).forgotten, 0);
    for (int i = 0; i < 2 * BRIEF_RUNS; i++)
        is_known(s, &told[i], getenv(i % 2 ? "BRIEF_STATIC" : "BRIEF"));
    close(pipes[0]);
    close(pipes[1]);
    address_spaces_free(s);
    sideband_close(band);
}

/* ---- programs that run before we listen ---- */

static void met(void **state)
{
    (void)state;
    struct brief told;
    struct space_mapping m;
    int pipes[2], gate[2];
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(pipe(gate), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        char go;
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        told.time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
        told.code = (uintptr_t)met;
        if (write(pipes[1], &told, sizeof(told)) == sizeof(told) && read(gate[0], &go, 1) == 1)
            _exit(0);
        _exit(1);
    }
    assert_int_equal(read(pipes[0], &told, sizeof(told)), sizeof(told));
    struct sideband *band = open_band(1024);
    struct address_spaces *s =
        address_spaces_new(band, &(struct address_spaces_options){.ended_max = ENDED_MAX});
    while (!address_spaces_meet(s, 1000000)) /* in as many steps as it takes */
        ;
    size_t readings = address_spaces_counts(s).readings;
    assert_true(address_spaces_meet(s, UINT32_MAX)); /* nobody twice */
    assert_true(address_spaces_counts(s).readings - readings < readings);
    assert_int_equal(write(gate[1], "g", 1), 1);
    finish(pid);
    address_spaces_drain(s);
    assert_true(address_spaces_find(s, pid, told.time_ns, told.code, &m));
    assert_int_equal(m.kind, MAPPING_FILE);
    assert_non_null(strstr(m.file->path, "spaces_live"));
    for (int i = 0; i < 2; i++) {
        close(pipes[i]);
        close(gate[i]);
    }
    address_spaces_free(s);
    sideband_close(band);
}

/* ---- one that maps in all ways ---- */

/* By the kernel's own names; a hand-written twin of proc_maps_kind(). */
static enum mapping_kind true_kind(const char *path, const char *rights)
{
    static const struct {
        const char *begin;
        enum mapping_kind kind;
    } kinds[] = {
        {"[heap]", MAPPING_HEAP},      {"[stack]", MAPPING_STACK},
        {"[v", MAPPING_VDSO},          {"/anon_hugepage", MAPPING_HUGETLB},
        {"/memfd:", MAPPING_SHARED},   {"/SYSV", MAPPING_SHARED},
        {"/dev/zero", MAPPING_SHARED}, {"/dev/shm/", MAPPING_SHARED},
        {"/", MAPPING_FILE},
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (!strncmp(path, kinds[i].begin, strlen(kinds[i].begin)))
            return kinds[i].kind;
    assert_int_equal(path[0], 0);
    return rights[3] == 's' ? MAPPING_SHARED : MAPPING_ANONYMOUS;
}

struct moment {
    char name[32];
    uint64_t time_ns;
    int pid;
};

static unsigned seen[MAPPING_KINDS];

static void is_right(struct address_spaces *s, const struct moment *at, const char *line)
{
    uint64_t start, end, offset;
    char rights[5];
    int path = 0;
    assert_int_equal(sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &start, &end, rights,
                            &offset, &path),
                     4);
    if (!strcmp(line + path, "[vsyscall]"))
        return; /* the same for all, and not mapped by anybody */
    uint64_t places[] = {start, start + (end - start) / 2, end - 1};
    for (int i = 0; i < 3; i++) {
        struct space_mapping m;
        address_spaces_find(s, at->pid, at->time_ns, places[i], &m);
        enum mapping_kind kind = true_kind(line + path, rights);
        seen[kind]++;
        if (m.kind != kind)
            fail_msg("at %s: %" PRIx64 " is of kind %d: %s", at->name, places[i], (int)m.kind, line);
        if (line[path] == '/') {
            assert_string_equal(m.file->path, line + path);
            assert_int_equal(m.page_offset + (start - m.start), offset);
        }
        unsigned protection =
            (rights[0] == 'r') * PROT_READ + (rights[1] == 'w') * PROT_WRITE + (rights[2] == 'x') * PROT_EXEC;
        if (kind != MAPPING_VDSO)
            assert_int_equal(m.protection, protection);
    }
}

static unsigned compare_moments(struct address_spaces *s, const char *path)
{
    struct moment at = {.pid = 0};
    char line[4400];
    unsigned moments = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "at %31s %" SCNu64 " %d", at.name, &at.time_ns, &at.pid) == 3)
            moments++;
        else if (strcmp(line, "end") != 0)
            is_right(s, &at, line);
    }
    fclose(file);
    return moments;
}

static void run_mapper(struct address_spaces *s, bool drain_late)
{
    char path[] = "/tmp/allium-mapper-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    char *argv[] = {getenv("MAPPER"), path, getenv("MAPPED_LIBRARY"), NULL};
    pid_t pid = spawn(argv, -1);
    for (siginfo_t info = {0}; !drain_late && !info.si_pid;) {
        waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
        address_spaces_drain(s);
    }
    finish(pid);
    address_spaces_drain(s);
    memset(seen, 0, sizeof(seen));
    unsigned moments = compare_moments(s, path);
    unlink(path);
    assert_int_equal(moments, 14);
    for (int kind = MAPPING_HEAP; kind < MAPPING_UNKNOWN; kind++)
        if (!seen[kind])
            fail_msg("none of kind %d was seen", kind);
}

static void mapper(void **state)
{
    (void)state;
    struct sideband *band = open_band(1024);
    struct address_spaces *s = address_spaces_new(band, NULL);
    for (int i = 0; i < 10; i++)
        run_mapper(s, i % 2);
    assert_int_equal(address_spaces_counts(s).lost, 0);
    assert_int_equal(sideband_malformed(band), 0);
    address_spaces_free(s);
    sideband_close(band);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"a thousand programs that live for a moment are known after they have ended", brief, NULL, NULL,
         NULL},
        {"a program that ran before, and was met, is known after it has ended", met, NULL, NULL},
        {"each moment of a program that maps in all ways is as it saw it itself", mapper, NULL, NULL, NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
