/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/collect/sideband on this kernel: losses counted to the unit, against a second band that has room for all; what is
 * known after them; processes from before; and CPUs that come and go, as far as a list of them can be changed without
 * doing so.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/addrspace/address_spaces.h"

#define PAGE     4096ul
#define MAPPINGS 500
#define TRIES    1000

static struct sideband *open_band(const struct sideband_options *options)
{
    struct sideband *band = NULL;
    struct error why;
    int bad = sideband_open(options, &band, &why);
    if (bad == -EACCES || bad == -EPERM || bad == -ENOSYS)
        skip();
    if (bad)
        fail_msg("%s", why.text);
    return band;
}

/* Every second page has other rights, so that the kernel does not make one mapping of them. */
static char *map_many(void)
{
    char *at = mmap(NULL, MAPPINGS * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; at != MAP_FAILED && i < MAPPINGS; i += 2)
        mprotect(at + i * PAGE, PAGE, PROT_READ | PROT_WRITE);
    return at;
}

/* A child that maps when it is told to, says where and when, and lives until its pipe is closed. */
struct mapped_ledger {
    char *at;
    uint64_t time_ns;
};

struct child {
    pid_t pid;
    int tell, hear;
};

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void serve(int in, int out)
{
    char order;
    struct mapped_ledger m = {.at = NULL};
    while (read(in, &order, 1) == 1) {
        if (order == 'u')
            munmap(m.at, MAPPINGS * PAGE);
        else
            m.at = map_many();
        m.time_ns = now_ns();
        if (write(out, &m, sizeof(m)) != sizeof(m))
            _exit(1);
    }
    _exit(0);
}

static struct child start(int cpu)
{
    int to[2], from[2];
    struct child c;
    assert_int_equal(pipe(to) | pipe(from), 0);
    c.pid = fork();
    if (!c.pid) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        if (cpu >= 0)
            sched_setaffinity(0, sizeof(set), &set);
        close(to[1]);
        close(from[0]);
        serve(to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    c.tell = to[1];
    c.hear = from[0];
    return c;
}

static struct mapped_ledger order(const struct child *c, char what)
{
    struct mapped_ledger m;
    assert_int_equal(write(c->tell, &what, 1), 1);
    assert_int_equal(read(c->hear, &m, sizeof(m)), sizeof(m));
    assert_ptr_not_equal(m.at, MAP_FAILED);
    return m;
}

static void stop(const struct child *c)
{
    close(c->tell);
    close(c->hear);
    assert_int_equal(waitpid(c->pid, NULL, 0), c->pid);
}

/* ---- losses ---- */

struct tally {
    uint64_t records, gaps, lost;
    uint64_t came; /* gaps because a CPU came */
    uint64_t last_ns;
    bool in_order;
    pid_t pid;
    uint64_t of_pid;
};

static void count(void *arg, const struct sideband_record *r)
{
    struct tally *t = arg;
    if (r->type == SIDEBAND_GAP) {
        t->gaps++;
        t->came += !r->lost;
        t->lost += r->lost;
        assert_true(r->since_ns <= r->time_ns);
    } else {
        t->records++;
        t->of_pid += r->pid == t->pid;
    }
    t->in_order &= r->time_ns >= t->last_ns;
    t->last_ns = r->time_ns;
}

/* Drains both at an instant at which nobody on the machine maps, forks or ends: for two looks, a millisecond apart,
 * neither gets anything. A CPU that writes a record to one and then to the other needs less. */
static void drain_both(struct sideband *large, struct tally *all, struct sideband *small, struct tally *some)
{
    for (int i = 0, quiet = 0; i < TRIES; i++) {
        const uint64_t before = all->records + some->records + some->lost;
        sideband_drain(large, count, all);
        sideband_drain(small, count, some);
        quiet = all->records + some->records + some->lost == before ? quiet + 1 : 0;
        if (quiet == 2)
            return;
        usleep(1000);
    }
    fail_msg("somebody maps all the time");
}

static void losses(void **state)
{
    (void)state;
    struct tally all = {.in_order = true}, some = {.in_order = true};
    struct sideband *large = open_band(&(struct sideband_options){.ring_pages = 1024});
    struct sideband *small = open_band(&(struct sideband_options){.ring_pages = 1});
    for (int round = 0; round < 10; round++) {
        drain_both(large, &all, small, &some);
        uint64_t happened = all.records, told = some.records + some.lost, lost = some.lost;
        munmap(map_many(), MAPPINGS * PAGE);
        drain_both(large, &all, small, &some);
        assert_int_equal(some.records + some.lost - told, all.records - happened);
        assert_true(some.lost > lost);
        assert_true(all.records - happened >= MAPPINGS / 2);
    }
    assert_int_equal(some.lost, sideband_lost(small));
    assert_int_equal(all.lost, 0);
    assert_int_equal(all.gaps, 0);
    assert_int_equal(sideband_malformed(small) + sideband_malformed(large), 0);
    assert_true(all.in_order);
    sideband_close(small);
    sideband_close(large);
}

static void are_mapped(struct address_spaces *s, pid_t pid, const struct mapped_ledger *m)
{
    struct space_mapping found;
    for (size_t i = 0; i < MAPPINGS; i++) {
        assert_true(address_spaces_find(s, pid, m->time_ns, (uint64_t)m->at + i * PAGE + 5, &found));
        assert_int_equal(found.kind, MAPPING_ANONYMOUS);
        assert_int_equal(found.protection & PROT_WRITE, i % 2 ? 0 : PROT_WRITE);
    }
}

static void after_losses(void **state)
{
    (void)state;
    struct sideband *band = open_band(&(struct sideband_options){.ring_pages = 1});
    struct address_spaces *s = address_spaces_new(band, NULL);
    struct address_spaces_process p;
    /* On one CPU: what another one told during the gap could not be put in order. */
    struct child c = start(sched_getcpu());
    struct mapped_ledger m = order(&c, 'm');
    address_spaces_drain(s);
    assert_true(address_spaces_counts(s).lost > 0);
    are_mapped(s, c.pid, &m);
    assert_true(address_spaces_process(s, c.pid, m.time_ns, &p));
    assert_int_equal(p.ended_ns, 0);
    uint64_t began = p.began_ns;
    stop(&c);
    munmap(map_many(), MAPPINGS * PAGE); /* the record of its end may be among what is lost */
    address_spaces_drain(s);
    assert_true(address_spaces_process(s, c.pid, m.time_ns, &p));
    assert_int_equal(p.began_ns, began);
    assert_true(p.ended_ns >= m.time_ns);
    address_spaces_free(s);
    sideband_close(band);
}

/* ---- from before ---- */

static void before(void **state)
{
    (void)state;
    struct child c = start(-1);
    struct mapped_ledger m = order(&c, 'm');
    struct sideband *band = open_band(NULL);
    struct address_spaces *s = address_spaces_new(band, NULL);
    struct address_spaces_process p;
    struct space_mapping found;
    address_spaces_drain(s);
    are_mapped(s, c.pid, &m);
    assert_true(address_spaces_process(s, c.pid, m.time_ns, &p));
    assert_int_equal(p.began_ns, 0);
    assert_true(p.complete);
    assert_string_equal(p.name, "test_sideband");
    m = order(&c, 'u'); /* has no record: it seems to be there, until it is looked at */
    address_spaces_drain(s);
    assert_true(address_spaces_find(s, c.pid, now_ns(), (uint64_t)m.at, &found));
    assert_int_equal(address_spaces_reread(s, c.pid), 0);
    assert_false(address_spaces_find(s, c.pid, now_ns(), (uint64_t)m.at, &found));
    stop(&c);
    address_spaces_drain(s);
    assert_int_equal(address_spaces_reread(s, c.pid), -ESRCH);
    assert_false(address_spaces_process(s, 0x7ffffff0, now_ns(), &p));
    address_spaces_free(s);
    sideband_close(band);
}

/* ---- CPUs ---- */

static void write_list(const char *path, const char *list)
{
    FILE *file = fopen(path, "w");
    fputs(list, file);
    assert_int_equal(fclose(file), 0);
}

static void cpus(void **state)
{
    (void)state;
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
    if (!CPU_ISSET(0, &set) || !CPU_ISSET(1, &set))
        skip();
    char path[] = "/tmp/allium-online-XXXXXX";
    close(mkstemp(path));
    write_list(path, "0\n");
    struct sideband *band = open_band(&(struct sideband_options){.online_path = path, .ring_pages = 1024});
    struct child c = start(1);
    struct tally t = {.pid = c.pid, .in_order = true};
    order(&c, 'm');
    sideband_drain(band, count, &t);
    t.of_pid = 0; /* it may have begun on CPU 0 */
    order(&c, 'm');
    sideband_drain(band, count, &t);
    assert_int_equal(t.of_pid, 0);
    write_list(path, "0-1\n");
    for (int i = 0; i < 600 && !t.came; i++) { /* looked at once a second */
        usleep(100000);
        sideband_drain(band, count, &t);
    }
    assert_int_equal(t.came, 1);
    order(&c, 'm');
    sideband_drain(band, count, &t);
    assert_int_equal(t.of_pid, 1 + MAPPINGS / 2);
    write_list(path, "0\n");
    for (uint64_t seen = 0; seen != t.of_pid;) { /* until nothing comes of it any more */
        seen = t.of_pid;
        usleep(1100000);
        sideband_drain(band, count, &t);
        order(&c, 'm');
        sideband_drain(band, count, &t);
    }
    assert_int_equal(t.came, 1);
    stop(&c);
    unlink(path);
    sideband_close(band);
}

static void refused(void **state)
{
    (void)state;
    struct sideband *band = NULL;
    struct error why;
    assert_int_equal(sideband_open(&(struct sideband_options){.online_path = "/nonexistent"}, &band, &why),
                     -ENOENT);
    assert_null(band);
    assert_non_null(strstr(why.text, "address spaces cannot be followed"));
}

/* ---- others who listen to mappings ---- */

struct listener {
    int fd;
    struct perf_event_mmap_page *ring;
};

/* Of this process, or of all on a CPU. */
static struct listener listen_too(pid_t pid, int cpu, bool build_ids)
{
    struct perf_event_attr attr = {.size = sizeof(attr),
                                   .type = PERF_TYPE_SOFTWARE,
                                   .config = PERF_COUNT_SW_DUMMY,
                                   .mmap = 1,
                                   .mmap2 = 1,
                                   .build_id = build_ids};
    struct listener l = {.fd = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC)};
    assert_true(l.fd >= 0);
    l.ring = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, l.fd, 0);
    assert_ptr_not_equal(l.ring, MAP_FAILED);
    return l;
}

static void stop_listening(const struct listener *l)
{
    munmap(l->ring, 2 * PAGE);
    close(l->fd);
}

/* Maps this program once more; its inode. */
static uint64_t map_program(void)
{
    struct stat st;
    int fd = open("/proc/self/exe", O_RDONLY);
    assert_int_equal(fstat(fd, &st), 0);
    void *at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    munmap(at, PAGE);
    close(fd);
    return st.st_ino;
}

struct mapping_record {
    struct perf_event_header header;
    uint32_t pid, tid;
    uint64_t start, bytes, offset;
    uint32_t major, minor;
    uint64_t inode;
};

/* What one is told who asked for no build ids. */
static struct mapping_record told(uint64_t *inode)
{
    struct mapping_record record;
    struct listener l = listen_too(0, -1, false);
    *inode = map_program();
    assert_true(l.ring->data_head >= sizeof(record));
    memcpy(&record, (char *)l.ring + l.ring->data_offset, sizeof(record));
    assert_int_equal(record.header.type, PERF_RECORD_MMAP2);
    stop_listening(&l);
    return record;
}

/* Somebody else on this machine may be asking for build ids: one record is enough. */
static void others_hear_what_they_asked_for(void **state)
{
    (void)state;
    uint64_t inode;
    struct sideband *band = open_band(NULL);
    struct mapping_record record = told(&inode);
    for (int i = 0; i < TRIES && record.header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID; i++) {
        usleep(20000);
        record = told(&inode);
    }
    assert_int_equal(record.header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID, 0);
    assert_int_equal(record.inode, inode);
    sideband_close(band);
}

static void take_program(void *arg, const struct sideband_record *r)
{
    uint64_t *inode = arg;
    if (r->type == SIDEBAND_MAP && r->pid == getpid() && r->text[0] == '/')
        *inode = r->inode;
}

static void others_who_ask_for_build_ids(void **state)
{
    (void)state;
    uint64_t heard = 0;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    struct sideband *band = open_band(NULL);
    struct listener l = listen_too(-1, sched_getcpu(), true); /* the last to come is the first to be told */
    uint64_t inode = map_program();
    sideband_drain(band, take_program, &heard);
    assert_int_equal(heard, inode);
    assert_int_equal(sideband_malformed(band), 0);
    stop_listening(&l);
    sideband_close(band);
    sched_setaffinity(0, sizeof(before), &before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"what is lost is counted to the unit", losses, NULL, NULL, NULL},
        {"after a loss a process is read again", after_losses, NULL, NULL, NULL},
        {"one from before is read, and read again when asked to", before, NULL, NULL, NULL},
        {"CPUs that come are listened to, those that go are left", cpus, NULL, NULL, NULL},
        {"what cannot be had is said", refused, NULL, NULL, NULL},
        {"perf beside it hears the device, as it asked", others_hear_what_they_asked_for, NULL, NULL, NULL},
        {"build ids that another one asked for are no devices", others_who_ask_for_build_ids, NULL, NULL,
         NULL},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
