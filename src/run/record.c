/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/record.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "allium_version.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"
#include "collect/ledger/ledger_dir.h"
#include "collect/ledger/profile_names.h"
#include "collect/trace/trace_dir.h"
#include "run/launch.h"
#include "run/ledger_tracker.h"
#include "store/recording.h"
#include "symbol/debuginfod_servers.h"

struct session {
    const struct record_options *o;
    struct launch launch;
    struct launch_options launch_options;
    struct recording *recording;
    struct symbols *symbols;
    struct ring_follow *rings;
    struct kernel_follow *kernel;
    struct trace_flight *flight;
    char *dir, *agent, *path, *folder;
};

static char *default_path(const char *command, pid_t pid, const char *suffix)
{
    struct buf b = BUF_INIT;
    const char *slash = strrchr(command, '/');
    buf_printf(&b, "%s.%d%s", slash ? slash + 1 : command, (int)pid, suffix);
    return buf_detach(&b);
}

static int describe(struct session *s, struct error *e)
{
    struct buf text = BUF_INIT;
    struct utsname host;
    for (char **arg = s->o->argv; *arg && (s->o->keep_args || arg == s->o->argv); arg++)
        buf_printf(&text, "%s%s", arg == s->o->argv ? "" : " ", *arg);
    int bad = recording_set_text(s->recording, RECORDING_COMMAND, buf_str(&text), e);
    buf_reset(&text);
    if (!uname(&host))
        buf_printf(&text, "%s %s %s", host.sysname, host.release, host.machine);
    if (!bad)
        bad = recording_set_text(s->recording, RECORDING_HOST, buf_str(&text), e);
    buf_release(&text);
    if (!bad)
        bad = recording_set_text(s->recording, RECORDING_VERSION, ALLIUM_VERSION, e);
    if (!bad)
        bad = recording_set_number(s->recording, RECORDING_PERIOD, (int64_t)s->o->period_bytes, e);
    if (!bad)
        bad = recording_set_number(s->recording, RECORDING_STARTED, clock_ns(CLOCK_REALTIME), e);
    return bad ? bad : recording_commit(s->recording, e);
}

/* Makes the folder of the trace, and begins to read rings. */
static int begin_trace(struct session *s, struct error *e)
{
    const struct record_trace *t = s->o->trace;
    char *folder = t->folder ? mem_strdup(t->folder) : default_path(s->o->argv[0], s->launch.pid, ".trace");
    struct buf recording = BUF_INIT;
    const int bad = trace_dir_make(folder, s->o->force, e);
    if (bad) {
        free(folder);
        return bad;
    }
    s->folder = folder;
    buf_printf(&recording, "%s/profile.allium", folder);
    s->path = buf_detach(&recording);
    if (t->flight && s->kernel && kernel_follow_start(s->kernel, NULL, e))
        return -EINVAL;
    if (t->flight)
        return trace_flight_begin(&s->flight,
                                  &(struct trace_flight_options){.dir = s->dir,
                                                                 .folder = folder,
                                                                 .limit_bytes = t->limit_bytes,
                                                                 .pid = s->launch.pid,
                                                                 .kernel = s->kernel,
                                                                 .triggers = t->flight},
                                  e);
    if (s->kernel) {
        struct buf kernel = BUF_INIT;
        buf_printf(&kernel, "%s/kernel", folder);
        const int unfollowed = kernel_follow_start(s->kernel, buf_str(&kernel), e);
        buf_release(&kernel);
        if (unfollowed)
            return unfollowed;
    }
    return ring_follow_begin(&s->rings,
                             &(struct ring_follow_options){.dir = s->dir,
                                                           .folder = folder,
                                                           .limit_bytes = t->limit_bytes,
                                                           .duration_ns = t->duration_ns,
                                                           .clock = t->clock,
                                                           .where = t->where},
                             e);
}

/* Attaches to the kernel, and to functions of the program. */
static int begin_kernel(struct session *s, struct error *e)
{
    const struct record_trace *t = s->o->trace;
    if (!t || (!t->kernel_groups && !t->probes))
        return 0;
    const int bad = kernel_follow_begin(&s->kernel,
                                        &(struct kernel_follow_options){.groups = t->kernel_groups,
                                                                        .probes = t->probes,
                                                                        .ring_bytes = t->kernel_ring_bytes,
                                                                        .overwrites = t->flight != NULL},
                                        e);
    if (!bad && t->probes && t->priced) {
        struct buf line = BUF_INIT;
        kernel_follow_price(s->kernel, &line);
        t->priced(buf_str(&line));
        buf_release(&line);
    }
    return bad;
}

/* Does everything that can fail before the command is allowed to begin. */
static int make_ready(struct session *s, struct error *e)
{
    int bad = launch_find_agent(s->o->sites || s->o->trace ? LAUNCH_AGENT_FULL : LAUNCH_AGENT_DEFAULT,
                                &s->agent, e);
    if (!bad)
        bad = ledger_dir_make(&s->dir, e);
    if (bad)
        return bad;
    s->launch_options = (struct launch_options){.agent = s->agent,
                                                .dir = s->dir,
                                                .period_bytes = s->o->period_bytes,
                                                .ledger_limit_bytes = s->o->ledger_limit_bytes,
                                                .follow = s->o->follow,
                                                .sites = s->o->sites != NULL,
                                                .traces = s->o->trace != NULL,
                                                .flight = s->o->trace && s->o->trace->flight,
                                                .trace_options = s->o->trace ? s->o->trace->options : NULL,
                                                .events = s->o->trace ? s->o->trace->events : NULL,
                                                .wrappers = s->o->wrappers,
                                                .argv = s->o->argv};
    bad = begin_kernel(s, e);
    bad = bad ? bad : launch_prepare(&s->launch, &s->launch_options, e);
    if (!bad && s->o->trace)
        bad = begin_trace(s, e);
    if (bad)
        return bad;
    if (!s->path)
        s->path =
            s->o->output ? mem_strdup(s->o->output) : default_path(s->o->argv[0], s->launch.pid, ".allium");
    bad = recording_create(&s->recording, s->path, s->o->force, e);
    return bad ? bad : describe(s, e);
}

/*
 * While the command runs, debug files are fetched in the background. The user waits only after it has ended, and
 * then not for long.
 */
static void use_servers(struct session *s)
{
    symbols_use_servers(s->symbols, s->o->servers);
    if (!s->o->servers)
        return;
    symbol_servers_in_background(s->o->servers, true);
    symbol_servers_interrupt(s->o->servers, s->launch.signal_fd);
}

/* Runs until the command has ended. If the recording fails, the command continues without it. */
static int watch(struct session *s, struct ledger_tracker *f, struct error *e)
{
    int bad = 0, wait_ms = 10;
    for (;;) {
        struct pollfd fds[] = {{.fd = s->launch.process_fd, .events = POLLIN},
                               {.fd = s->launch.signal_fd, .events = POLLIN},
                               {.fd = bad ? -1 : ledger_tracker_fd(f), .events = POLLIN}};
        poll(fds, 3, bad ? -1 : wait_ms);
        if (fds[1].revents)
            launch_pass_signals(&s->launch);
        if (fds[0].revents)
            return bad;
        if (!bad)
            bad = ledger_tracker_step(f, &wait_ms, e);
    }
}

/* Stores the CPU time and memory of this process up to now, without the cost of closing the recording. */
static int put_own_cost(struct session *s, struct error *e)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage))
        return 0;
    int bad = recording_set_number(s->recording, RECORDING_CPU, clock_ns(CLOCK_PROCESS_CPUTIME_ID), e);
    return bad ? bad : recording_set_number(s->recording, RECORDING_MEMORY, usage.ru_maxrss * 1024, e);
}

static int finish(struct session *s, struct ledger_tracker *f, struct record_result *result, int bad,
                  struct error *e)
{
    result->wait_status = launch_reap(&s->launch);
    int untraced = trace_flight_end(s->flight, result->wait_status, &result->flown, e);
    s->flight = NULL; /* it has looked at the kernel's rings */
    const int unfollowed = kernel_follow_end(s->kernel, &result->kernel, e);
    bad = bad ? bad : unfollowed;
    s->kernel = NULL;
    const int unread = ring_follow_end(s->rings, &result->traced, e);
    untraced = untraced ? untraced : unread;
    s->rings = NULL;
    if (s->o->servers) {
        symbol_servers_in_background(s->o->servers, false);
        launch_handle_interrupts(&s->launch);
    }
    if (!bad)
        bad = ledger_tracker_finish(f, e);
    if (!bad)
        bad = recording_set_number(s->recording, RECORDING_ENDED, clock_ns(CLOCK_REALTIME), e);
    if (!bad)
        bad = recording_set_number(s->recording, RECORDING_EXIT, result->wait_status, e);
    uint64_t killed = WIFSIGNALED(result->wait_status) ? ledger_tracker_command_image(f) : 0;
    if (!bad && killed)
        bad = recording_set_number(s->recording, RECORDING_KILLED, (int64_t)killed, e);
    if (!bad)
        bad = put_own_cost(s, e);
    int closed = recording_close(s->recording, bad ? NULL : e);
    s->recording = NULL;
    return bad ? bad : closed ? closed : untraced;
}

int record_command(const struct record_options *o, struct record_result *result, struct error *e)
{
    struct session s = {.o = o};
    *result = (struct record_result){.stage = RECORD_NOT_STARTED};
    int bad = make_ready(&s, e);
    if (bad)
        goto out;
    bad = launch_go(&s.launch, &s.launch_options, e);
    if (bad) {
        result->stage = bad == -ENOENT ? RECORD_NOT_FOUND : RECORD_NOT_EXECUTABLE;
        recording_close(s.recording, NULL);
        s.recording = NULL;
        unlink(s.path);
        goto out;
    }
    result->stage = RECORD_RAN;
    if (o->started)
        o->started(s.launch.pid, s.path);
    char *cache = profile_names_cache_dir();
    s.symbols = symbols_new(cache);
    free(cache);
    use_servers(&s);
    struct ledger_tracker *f = ledger_tracker_new(
        &(struct ledger_tracker_options){.sites = o->sites,
                                         .dir = s.dir,
                                         .recording = s.recording,
                                         .symbols = s.symbols,
                                         .keep_args = o->keep_args,
                                         .pid = s.launch.pid,
                                         .own_allocator = o->own_allocator ? o->argv[0] : NULL});
    bad = watch(&s, f, e);
    bad = finish(&s, f, result, bad, e);
    ledger_tracker_free(f);
out:
    if (s.recording)
        recording_close(s.recording, NULL);
    trace_flight_end(s.flight, 0, &result->flown, NULL);
    kernel_follow_end(s.kernel, &result->kernel, NULL);
    ring_follow_end(s.rings, &result->traced, NULL);
    if (s.folder && result->stage != RECORD_RAN)
        trace_dir_remove(s.folder);
    if (s.dir)
        ledger_run_remove(s.dir);
    symbols_free(s.symbols);
    launch_release(&s.launch);
    result->path = s.path;
    result->folder = s.folder;
    free(s.dir);
    free(s.agent);
    return bad;
}
