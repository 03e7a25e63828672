/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/event_ring.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/sigsafe/clock_ns.h"
#include "sys/resolver.h"
#include "sys/sampled_rows.h"
#include "sys/stack_samples.h"

#define GATHER_MS    20
#define MEET_STEP_NS 5000000u /* at a time: events wait meanwhile */
#define MEET_WAIT_MS 20

static int take_event(void *arg, void *data, size_t bytes)
{
    struct sys_session *s = arg;
    stack_samples_read(s); /* its stack came before it did */
    if (!sys_loses(s))
        s->tool->event(s, s->rows, data, bytes);
    return 0;
}

/* Edges: each wake-up of the kernel's is notified once, and what is left in the ring does not tell again. */
static int watch(struct sys_session *s, int fd)
{
    struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.fd = fd};
    return epoll_ctl(s->poll_fd, EPOLL_CTL_ADD, fd, &ev);
}

int event_ring_open(struct sys_session *s, struct error *e)
{
    s->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (s->poll_fd < 0)
        return error_set(e, errno, "cannot wait for events: %s", strerror(errno));
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = resolver_fd(s->names)};
    if (ev.data.fd >= 0 && epoll_ctl(s->poll_fd, EPOLL_CTL_ADD, ev.data.fd, &ev))
        return error_set(e, errno, "cannot wait for events of memory mappings: %s", strerror(errno));
    if (s->samples && watch(s, stack_samples_fd(s)))
        return error_set(e, errno, "cannot wait for samples: %s", strerror(errno));
    if (!s->tool->event)
        return 0;
    s->ring_fd = sys_map(s, "ring");
    s->ring = ring_buffer__new(s->ring_fd, take_event, s, NULL);
    if (!s->ring || watch(s, s->ring_fd))
        return error_set(e, errno, "cannot read the ring of events: %s", strerror(errno));
    return 0;
}

void event_ring_close(struct sys_session *s)
{
    ring_buffer__free(s->ring);
    s->ring = NULL;
    if (s->poll_fd >= 0)
        close(s->poll_fd);
    s->poll_fd = -1;
}

static void say(struct sys_session *s, enum sys_reader how)
{
    __atomic_store_n(&s->state->reader, (uint32_t)how, __ATOMIC_SEQ_CST);
}

/* How many milliseconds of `timeout_ms`, which began at `began`, are left. */
static int time_left(uint64_t began_ns, int timeout_ms)
{
    if (timeout_ms < 0)
        return -1;
    uint64_t gone_ms = (clock_ns(CLOCK_MONOTONIC) - began_ns) / 1000000;
    return gone_ms >= (uint64_t)timeout_ms ? 0 : timeout_ms - (int)gone_ms;
}

static int consume(struct sys_session *s)
{
    int samples = stack_samples_read(s), events = s->ring ? ring_buffer__consume(s->ring) : 0;
    if (sampled_rows_are(s))
        rows_gather(s);
    return events ? events : samples;
}

/* One wait; 1: the ring notified, 0: time is over or something else did. */
static int wait_once(struct sys_session *s, int timeout_ms, bool *other)
{
    struct epoll_event ev[8];
    int n = epoll_wait(s->poll_fd, ev, 8, timeout_ms), notified = 0;
    if (n < 0)
        return -errno;
    for (int i = 0; i < n; i++) {
        if (ev[i].data.fd == resolver_fd(s->names)) {
            resolver_drain(s->names);
            continue;
        }
        bool ours = ev[i].data.fd == s->ring_fd || ev[i].data.fd == stack_samples_fd(s);
        notified = notified || ours;
        *other = *other || !ours;
    }
    return notified;
}

/*
 * Is a record's place taken, but not filled? Its program may have looked how we wait before we said so, and then wakes
 * nobody: the kernel counts such places as something to read, ring_buffer__consume() does not.
 */
static bool is_being_written(const struct sys_session *s)
{
    struct pollfd rings[] = {{s->ring ? s->ring_fd : -1, POLLIN, 0}, {stack_samples_fd(s), POLLIN, 0}};
    return poll(rings, 2, 0) > 0;
}

/* Looks at more of the processes that had no turn at the start; how long may be waited then. */
static int meet_more(struct sys_session *s, int timeout_ms)
{
    if (s->met)
        return timeout_ms;
    s->met = resolver_meet(s->names, MEET_STEP_NS);
    return timeout_ms >= 0 && timeout_ms < MEET_WAIT_MS ? timeout_ms : MEET_WAIT_MS;
}

int sys_wait(struct sys_session *s, int timeout_ms, struct table *t)
{
    bool other = false;
    int r, n = 0;
    timeout_ms = meet_more(s, timeout_ms);
    const int next_ms = s->tool->step ? s->tool->step(s) : -1;
    if (next_ms >= 0 && (timeout_ms < 0 || next_ms < timeout_ms))
        timeout_ms = next_ms;
    uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
    s->rows = t;
    if (!s->ring && !s->samples) {
        r = wait_once(s, timeout_ms, &other);
        return r < 0 ? r : 0;
    }
    /* Said before the ring is looked at: a record that comes after the look finds it said. */
    say(s, SYS_READER_SLEEPS);
    while (!(n = consume(s)) && is_being_written(s))
        sched_yield();
    if (n) {
        say(s, SYS_READER_BUSY);
        return n;
    }
    r = wait_once(s, timeout_ms, &other);
    if (r > 0 && !s->tool->urgent && !other) {
        int rest = time_left(began_ns, timeout_ms);
        say(s, SYS_READER_DOZES);
        r = wait_once(s, rest < 0 || rest > GATHER_MS ? GATHER_MS : rest, &other);
    }
    say(s, SYS_READER_BUSY);
    n = consume(s);
    return n ? n : r < 0 ? r : 0;
}
