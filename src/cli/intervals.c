/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/intervals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/sigsafe/clock_ns.h"
#include "cli/option_values.h"

#define SECOND_NS  1000000000u
#define TIME_LEAST 10000000u
#define FDS_MAX    8u

int intervals_check_fit(const struct command *c, uint64_t interval_ns, uint64_t duration_ns,
                        const char *interval, const char *duration)
{
    if (!duration_ns || interval_ns <= duration_ns)
        return -1;
    return command_misuse(c, "--interval %s is longer than --duration %s: use a shorter --interval", interval,
                          duration);
}

int intervals_parse(struct intervals *i, const struct command *c, const struct arguments *a,
                    const struct intervals *otherwise)
{
    const char *interval = command_value(c, a, "interval"), *duration = command_value(c, a, "duration");
    bool at_once = otherwise && otherwise->every_ns; /* the first tick */
    *i = otherwise && !interval ? *otherwise : (struct intervals){0};
    int code = option_values_parse_time(c, "interval", interval, TIME_LEAST, &i->every_ns);
    if (code < 0)
        code = option_values_parse_time(c, "duration", duration, TIME_LEAST, &i->duration_ns);
    if (code < 0)
        code = option_values_parse_count(c, "count", command_value(c, a, "count"), 1, UINT32_MAX, &i->count);
    if (code < 0 && !i->every_ns && (i->count || (i->duration_ns && !otherwise)))
        code = command_misuse(c, "--%s needs --interval", i->count ? "count" : "duration");
    if (code < 0 && !at_once)
        code = intervals_check_fit(c, i->every_ns, i->duration_ns, interval, duration);
    return code;
}

/* ---- the loop ---- */

static const int ends[] = {SIGINT, SIGTERM, SIGHUP, 0};

static bool is_among(const int *signals, int number)
{
    for (; signals && *signals; signals++)
        if (*signals == number)
            return true;
    return false;
}

int intervals_begin(struct intervals_loop *l, const struct intervals *of, const int *own_signals)
{
    sigset_t set;
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    *l = (struct intervals_loop){.of = *of,
                                 .own_signals = own_signals,
                                 .began_ns = now,
                                 .due_ns = of->every_ns ? now + of->every_ns : UINT64_MAX,
                                 .end_ns = of->duration_ns ? now + of->duration_ns : UINT64_MAX};
    sigemptyset(&set);
    sigaddset(&set, SIGWINCH);
    for (const int *s = ends; *s; s++)
        sigaddset(&set, *s);
    for (const int *s = own_signals; s && *s; s++)
        sigaddset(&set, *s);
    l->signal_fd = sigprocmask(SIG_BLOCK, &set, NULL) ? -1 : signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return l->signal_fd < 0 ? -errno : 0;
}

void intervals_end(struct intervals_loop *l)
{
    close(l->signal_fd);
}

static enum intervals_event take_signal(struct intervals_loop *l)
{
    struct signalfd_siginfo info;
    if (read(l->signal_fd, &info, sizeof(info)) != sizeof(info))
        return INTERVALS_NOTHING;
    l->signal = (int)info.ssi_signo;
    return is_among(l->own_signals, l->signal) ? INTERVALS_SIGNAL
           : l->signal == SIGWINCH             ? INTERVALS_RESIZED
                                               : INTERVALS_OVER;
}

static uint64_t due_after_interval(const struct intervals_loop *l, uint64_t now)
{
    uint64_t due = l->due_ns + l->of.every_ns;
    return due < now ? now + l->of.every_ns : due; /* a tick took long, or the process was stopped */
}

/* Returns the next early tick, or the next multiple of the interval since the start. */
static uint64_t due_on_schedule(const struct intervals_loop *l, uint64_t now)
{
    uint64_t last = l->due_ns > now ? l->due_ns : now;
    uint64_t regular = l->began_ns + ((last - l->began_ns) / l->of.every_ns + 1) * l->of.every_ns;
    for (const uint32_t *s = l->of.early_s; *s; s++)
        if (l->began_ns + (uint64_t)*s * SECOND_NS > last)
            return l->began_ns + (uint64_t)*s * SECOND_NS;
    return regular;
}

enum intervals_event intervals_next(struct intervals_loop *l)
{
    enum intervals_event signal = take_signal(l);
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    bool at_end = now >= l->end_ns, due = now >= l->due_ns && l->due_ns <= l->end_ns;
    if (signal != INTERVALS_NOTHING)
        return signal;
    if ((at_end && (!due || l->reports_at_end)) || (l->of.count && l->ticks == l->of.count))
        return INTERVALS_OVER;
    if (!due)
        return INTERVALS_NOTHING;
    l->ticks++;
    l->due_ns = l->of.early_s ? due_on_schedule(l, now) : due_after_interval(l, now);
    return INTERVALS_TICK;
}

uint64_t intervals_left_ns(const struct intervals_loop *l)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC), next = l->due_ns < l->end_ns ? l->due_ns : l->end_ns;
    return next > now ? next - now : 0;
}

enum intervals_event intervals_wait(struct intervals_loop *l, struct pollfd *fds, unsigned n_fds,
                                    int patience_ms)
{
    struct pollfd all[FDS_MAX] = {{.fd = l->signal_fd, .events = POLLIN}};
    enum intervals_event event = intervals_next(l);
    if (event != INTERVALS_NOTHING)
        return event;
    uint64_t left = intervals_left_ns(l);
    if (patience_ms >= 0 && left > (uint64_t)patience_ms * 1000000u)
        left = (uint64_t)patience_ms * 1000000u;
    struct timespec t = {.tv_sec = (time_t)(left / SECOND_NS), .tv_nsec = (long)(left % SECOND_NS)};
    for (unsigned i = 0; i < n_fds; i++)
        all[1 + i] = fds[i];
    bool ready = ppoll(all, 1 + n_fds, &t, NULL) > 0;
    for (unsigned i = 0; i < n_fds; i++)
        fds[i].revents = ready ? all[1 + i].revents : 0;
    return intervals_next(l);
}

int intervals_run(const struct intervals *i, intervals_tick_fn *tick, void *arg)
{
    struct intervals_loop l;
    int bad = intervals_begin(&l, i, NULL);
    if (bad)
        return command_fail(EXIT_FAILED, "cannot wait for signals: %s", strerror(-bad));
    int code = tick(arg, 0, 0);
    uint64_t last = l.began_ns;
    enum intervals_event event = INTERVALS_NOTHING;
    while (code < 0 && event != INTERVALS_OVER) {
        event = intervals_wait(&l, NULL, 0, -1);
        if (event != INTERVALS_TICK)
            continue;
        uint64_t at = clock_ns(CLOCK_MONOTONIC);
        code = tick(arg, at - l.began_ns, at - last);
        last = at;
    }
    intervals_end(&l);
    return code < 0 ? EXIT_DONE : code;
}
