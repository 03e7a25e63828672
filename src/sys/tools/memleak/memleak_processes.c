/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/tools/memleak/memleak_processes.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/sigsafe/clock_ns.h"
#include "bpf/memleak.h"
#include "collect/process/proc.h"
#include "sys/bpf_object.h"
#include "sys/probe/return_check.h"
#include "sys/resolver.h"
#include "sys/tools/memleak/memleak_live.h"

#define LOOK_MS  1000u
#define JUDGE_MS 200 /* while some process is not judged */

int memleak_open(struct sys_session *s, const struct memleak_settings *settings, struct error *e)
{
    struct memleak_own *o = s->own = s->own ? s->own : mem_alloc(sizeof(*o));
    const char *functions = sys_option(s, "functions");
    o->settings = *settings;
    alloc_functions_release(&o->functions);
    alloc_functions_init(&o->functions);
    return functions ? alloc_functions_parse(&o->functions, functions, e) : 0;
}

void memleak_release(struct sys_session *s)
{
    struct memleak_own *o = s->own;
    if (!o)
        return;
    ring_buffer__free(o->notices);
    memleak_cost_release(&o->cost);
    alloc_processes_free(o->processes);
    alloc_functions_release(&o->functions);
    vec_release(&o->gone_images);
    memleak_live_free(o->live);
    free(o);
    s->own = NULL;
}

/* ---- processes that come later ---- */

/* One that ends at once, or has no allocator with a name, is none that was asked for by itself. */
static void add_later(struct sys_session *s, pid_t pid)
{
    struct memleak_own *o = s->own;
    struct error e;
    resolver_know(s->names, pid);
    alloc_processes_add(o->processes, pid, &e);
}

static int notice(void *arg, void *data, size_t bytes)
{
    struct sys_session *s = arg;
    struct memleak_own *o = s->own;
    const struct memleak_notice *n = data;
    if (bytes < sizeof(*n))
        return 0;
    switch (n->event) {
    case MEMLEAK_FORKED:
    case MEMLEAK_APPEARED:
        add_later(s, (pid_t)n->pid);
        break;
    case MEMLEAK_EXECUTED:
        if (n->image)
            *vec_push(&o->gone_images) = n->image;
        resolver_know(s->names, (int)n->pid);
        alloc_processes_executed(o->processes, n->process, n->comm);
        break;
    case MEMLEAK_LOADED:
        alloc_processes_again(o->processes, n->process);
        break;
    case MEMLEAK_ENDED:
        alloc_processes_end(o->processes, n->process);
        break;
    default:
        break;
    }
    return 0;
}

int memleak_step(struct sys_session *s)
{
    struct memleak_own *o = s->own;
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    ring_buffer__consume(o->notices);
    if (o->removed)
        return -1;
    const bool undecided = o->settings.period != 1 && alloc_processes_judge(o->processes);
    const uint64_t since_ms = (now - o->cost.looked_ns) / 1000000u;
    if (since_ms < LOOK_MS)
        return undecided && LOOK_MS - since_ms > JUDGE_MS ? JUDGE_MS : (int)(LOOK_MS - since_ms);
    alloc_processes_end_gone(o->processes);
    if (memleak_cost_exceeds(&o->cost, s, o->processes, &s->says)) {
        alloc_processes_detach(o->processes);
        o->removed = true;
    }
    return undecided ? JUDGE_MS : LOOK_MS;
}

/* ---- at the start ---- */

static int refuse_agent(struct sys_session *s, pid_t pid, struct error *e)
{
    if (sys_option(s, "even-observed") || !proc_has_agent(pid))
        return 0;
    return error_set(e, EINVAL,
                     "allium's agent follows the memory of process %d already, at less cost: use "
                     "`allium report %d`, or add --even-observed",
                     (int)pid, (int)pid);
}

/* Adds the processes that fit the filters now. Returns 0, or -errno with a line. */
static int add_fitting(struct sys_session *s, struct error *e)
{
    struct memleak_own *o = s->own;
    struct bpf_link *link =
        bpf_program__attach_iter(bpf_object__find_program_by_name(s->object, "memleak_lists"), NULL);
    const int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1;
    uint32_t pids[256];
    ssize_t n = 0;
    while (fd >= 0 && (n = read(fd, pids, sizeof(pids))) > 0)
        for (size_t i = 0; i < (size_t)n / sizeof(*pids); i++) {
            struct error one;
            const int bad = refuse_agent(s, (pid_t)pids[i], &one);
            if (bad || alloc_processes_add(o->processes, (pid_t)pids[i], &one))
                o->left_out++;
        }
    const int bad = fd < 0 || n < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    bpf_link__destroy(link);
    return bad ? error_set(e, -bad, "cannot list processes: %s", strerror(-bad)) : 0;
}

static int add_first(struct sys_session *s, struct error *e)
{
    struct memleak_own *o = s->own;
    const struct sys_config *c = &s->settings.config;
    if (s->settings.command)
        return alloc_processes_add_command(o->processes, s->settings.command, s->settings.command_program, e);
    if (!c->filters) /* no process is meant: it is only tried whether the programs can be attached */
        return 0;
    if (!(c->filters & SYS_FILTER_TGID))
        return add_fitting(s, e);
    const int bad = refuse_agent(s, (pid_t)c->tgid, e);
    return bad ? bad : alloc_processes_add(o->processes, (pid_t)c->tgid, e);
}

int memleak_begin(struct sys_session *s, struct error *e)
{
    struct memleak_own *o = s->own;
    const int fd = sys_map(s, "notices");
    int bad = return_check("sys memleak", e);
    if (bad)
        return bad;
    o->processes = alloc_processes_new(s, &o->functions, e);
    if (!o->processes)
        return -EIO;
    o->notices = ring_buffer__new(fd, notice, s, NULL);
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
    if (!o->notices || epoll_ctl(s->poll_fd, EPOLL_CTL_ADD, fd, &ev))
        return error_set(e, errno, "cannot read notices of processes: %s", strerror(errno));
    bad = add_first(s, e);
    bad = bad ? bad : memleak_cost_begin(&o->cost, s, o->processes, o->settings.period, e);
    o->cost.limit_percent = o->settings.max_cost;
    if (!bad)
        memleak_cost_say_before(&o->cost, o->processes, &s->says);
    return bad == -ENOENT || bad == -EINVAL ? -EINVAL : bad;
}
