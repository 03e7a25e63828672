/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/tools/memleak_processes.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "bpf/memleak.h"
#include "sys/bpf_object.h"
#include "sys/resolver.h"
#include "sys/tools/memleak_live.h"

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
        alloc_processes_again(o->processes, n->process);
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
    ring_buffer__consume(o->notices);
    return -1;
}

/* ---- at the start ---- */

static int add_first(struct sys_session *s, struct error *e)
{
    struct memleak_own *o = s->own;
    const struct sys_config *c = &s->settings.config;
    if (s->settings.command)
        return alloc_processes_add_command(o->processes, s->settings.command, s->settings.command_program, e);
    if (c->filters & SYS_FILTER_TGID)
        return alloc_processes_add(o->processes, (pid_t)c->tgid, e);
    return error_set(e, EINVAL, "sys memleak needs a process: use -p PID or -- CMD");
}

int memleak_begin(struct sys_session *s, struct error *e)
{
    struct memleak_own *o = s->own;
    const int fd = sys_map(s, "notices");
    o->processes = alloc_processes_new(s, &o->functions);
    o->notices = ring_buffer__new(fd, notice, s, NULL);
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
    if (!o->notices || epoll_ctl(s->poll_fd, EPOLL_CTL_ADD, fd, &ev))
        return error_set(e, errno, "cannot read notices of processes: %s", strerror(errno));
    const int bad = add_first(s, e);
    return bad == -ENOENT || bad == -EINVAL ? -EINVAL : bad;
}
