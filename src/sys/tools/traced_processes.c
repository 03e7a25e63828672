/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/tools/traced_processes.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/kernel_events.h"
#include "collect/process/proc.h"
#include "collect/process/processes.h"
#include "model/overview/overview.h"
#include "sys/bpf_object.h"

#define ROUNDS_MOST 100u

static int damaged(struct error *e)
{
    return error_set(e, EIO, "its BPF programs are damaged in this allium: install it again");
}

int traced_processes_await(struct sys_session *s, struct error *e)
{
    uint32_t *awaits_first = bpf_object_shared(s, "awaits_first");
    if (!awaits_first)
        return damaged(e);
    __atomic_store_n(awaits_first, 1, __ATOMIC_SEQ_CST);
    return 0;
}

/* Lets the program that sees forks look for the offsets of CPUs. */
static int find_offsets(struct sys_session *s, struct error *e)
{
    uint32_t *awaits_first = bpf_object_shared(s, "awaits_first");
    if (!awaits_first)
        return damaged(e);
    __atomic_store_n(awaits_first, 2, __ATOMIC_SEQ_CST);
    const pid_t child = fork();
    if (!child)
        _exit(0);
    const int error = child < 0 ? errno : 0;
    if (child > 0)
        waitpid(child, NULL, 0);
    __atomic_store_n(awaits_first, 0, __ATOMIC_SEQ_CST);
    return error ? error_set(e, error, "cannot fork: %s", strerror(error)) : 0;
}

/* A process in the set is a bit. */
static uint64_t *word_of(uint64_t *set, pid_t pid)
{
    return &set[(uint32_t)pid / 64 % (KERNEL_EVENTS_PIDS / 64)];
}

static uint64_t bit_of(pid_t pid)
{
    return UINT64_C(1) << (pid & 63);
}

static bool has(uint64_t *set, pid_t pid)
{
    return __atomic_load_n(word_of(set, pid), __ATOMIC_SEQ_CST) & bit_of(pid);
}

/*
 * If the child has ended meanwhile, a new process may have its number, and follow_fork() has set or cleared the bit for
 * that process. So a bit that was set before is kept, and a bit that was set here is cleared. If the new process was
 * forked after the bit was set here, the bit may be cleared by mistake: the next round sets it again.
 */
static void add_child(uint64_t *set, const struct overview_process *child)
{
    struct overview_process now;
    const uint64_t before = __atomic_fetch_or(word_of(set, child->pid), bit_of(child->pid), __ATOMIC_SEQ_CST);
    if (!(before & bit_of(child->pid)) && process_read(child->pid, &now) &&
        now.start_ticks != child->start_ticks)
        __atomic_fetch_and(word_of(set, child->pid), ~bit_of(child->pid), __ATOMIC_SEQ_CST);
}

/* Adds the children of those that are in the set. Returns whether there was one, which may have children, too. */
static bool add_children(uint64_t *set)
{
    struct overview m = {.taken_ns = 0};
    bool any = false;
    if (processes_read(&m))
        return false;
    vec_each (const struct overview_process, p, &m.processes)
        if (!p->kernel && p->pid != getpid() && has(set, p->parent) && !has(set, p->pid)) {
            add_child(set, p);
            any = true;
        }
    overview_release(&m);
    return any;
}

int traced_processes_add(struct sys_session *s, pid_t pid, struct error *e)
{
    if (s->settings.config.pid_namespace)
        return error_set(
            e, EOPNOTSUPP,
            "in a PID namespace the kernel's events of a running process cannot be traced: run allium "
            "outside, or start the program by allium trace");
    const int bad = find_offsets(s, e);
    if (bad)
        return bad;
    size_t bytes;
    uint64_t *set = bpf_object_map_section(s, ".bss.traced", &bytes);
    if (!set)
        return error_set(e, errno, "cannot share memory with the BPF programs: %s", strerror(errno));
    /* From here on the programs follow what it forks; so those that it forked before are found in a few rounds. */
    __atomic_fetch_or(word_of(set, pid), bit_of(pid), __ATOMIC_SEQ_CST);
    const bool runs = proc_runs(pid);
    if (!runs)
        __atomic_fetch_and(word_of(set, pid), ~bit_of(pid), __ATOMIC_SEQ_CST);
    for (unsigned rounds = 0; runs && rounds < ROUNDS_MOST && add_children(set); rounds++)
        ;
    munmap(set, bytes);
    return runs ? 0 : error_set(e, ESRCH, "there is no process %d", (int)pid);
}
