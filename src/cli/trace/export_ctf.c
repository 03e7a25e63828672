/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/trace/export_ctf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/vec.h"
#include "cli/source_trace.h"
#include "collect/trace/event_folder.h"
#include "collect/trace/trace_dir.h"
#include "view/lttng/lttng_names.h"
#include "view/lttng/lttng_writer.h"

/* One of the folders of CTF. */
struct domain {
    bool kernel;
    struct lttng_writer *writer;
};

struct work {
    const char *from, *to;
    struct event_folder *events;
    struct profile *profile;
    struct lttng_names *names;
    struct VEC(struct domain) domains;
    uint8_t clock_uuid[16];
    uint64_t written;
};

static bool is_kernel(const char *domain)
{
    return !strcmp(domain, "kernel");
}

/* Makes the folder `path` inside of w->to, and its parents. Returns 0, or -errno with a line. */
static int make_folders(const struct work *w, const char *path, struct buf *made, struct error *e)
{
    buf_addstr(made, w->to);
    while (*path) {
        const size_t n = strcspn(path, "/");
        buf_addch(made, '/');
        buf_add(made, path, n);
        path += n + (path[n] == '/');
        if (mkdir(buf_str(made), 0700) && errno != EEXIST)
            return error_set(e, errno, "%s: %s", buf_str(made), strerror(errno));
    }
    return 0;
}

static char *last_part(const char *path)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    const char *slash = memrchr(path, '/', end);
    const char *from = slash && slash + 1 < path + end ? slash + 1 : path;
    return mem_strndup(from, (size_t)(path + end - from));
}

static int add_domain(struct work *w, const struct ctf_trace *t, struct error *e)
{
    struct stat st = {.st_uid = getuid()};
    struct buf path = BUF_INIT, folder = BUF_INIT;
    char *name = last_part(w->from);
    struct lttng_trace out = {.kernel = is_kernel(t->domain), .name = name, .offset_ns = t->offset_ns};
    struct domain *d = vec_push(&w->domains);
    d->kernel = out.kernel;
    memcpy(out.clock_uuid, w->clock_uuid, sizeof(out.clock_uuid));
    memcpy(out.uuid, t->uuid, sizeof(out.uuid));
    if (!stat(w->from, &st))
        out.uid = st.st_uid;
    if (out.kernel)
        buf_addstr(&path, "kernel");
    else
        buf_printf(&path, "ust/uid/%u/64-bit", out.uid);
    int bad = make_folders(w, buf_str(&path), &folder, e);
    bad = bad ? bad : lttng_writer_new(&d->writer, buf_str(&folder), &out, t->classes.at, t->classes.len, e);
    buf_release(&path);
    buf_release(&folder);
    free(name);
    return bad;
}

static struct lttng_writer *writer_of(const struct work *w, bool kernel)
{
    vec_each (const struct domain, d, &w->domains)
        if (d->kernel == kernel)
            return d->writer;
    return NULL;
}

/* Returns how many events of a CPU were lost until now. */
static uint64_t lost_of(const struct work *w, bool kernel, uint32_t cpu)
{
    vec_each (const struct cpu_loss, lost, &event_folder_lost(w->events)->by_cpu)
        if (lost->cpu == cpu && is_kernel(lost->domain) == kernel)
            return lost->events;
    return 0;
}

/* Writes the last packets: of all CPUs that have events, or lost all of theirs. */
static int finish_streams(const struct work *w, struct error *e)
{
    int bad = 0;
    vec_each (const struct cpu_loss, lost, &event_folder_lost(w->events)->by_cpu)
        if (!bad)
            bad = lttng_writer_finish(writer_of(w, is_kernel(lost->domain)), lost->cpu, lost->events, e);
    vec_each (const struct domain, d, &w->domains)
        for (size_t i = 0; i < lttng_writer_streams(d->writer) && !bad; i++)
            bad = lttng_writer_finish(d->writer, lttng_writer_cpu(d->writer, i),
                                      lost_of(w, d->kernel, lttng_writer_cpu(d->writer, i)), e);
    return bad;
}

/* Writes all events. Returns 0, or -errno with a line. */
static int write_events(struct work *w, struct error *e)
{
    struct trace_event event;
    int found, bad = 0;
    while (!bad && (found = event_folder_next(w->events, &event, e)) != 0) {
        if (found < 0)
            return found;
        const bool kernel = is_kernel(event.domain);
        lttng_names_learn(w->names, &event);
        bad = lttng_writer_event(writer_of(w, kernel), &event, lttng_names_of(w->names, &event),
                                 lost_of(w, kernel, event.cpu), e);
        w->written++;
    }
    return bad ? bad : finish_streams(w, e);
}

static int write_all(struct work *w, struct error *e)
{
    int bad = getrandom(w->clock_uuid, sizeof(w->clock_uuid), 0) < 0 ? error_set(e, errno, "getrandom") : 0;
    for (size_t i = 0; i < event_folder_domains(w->events) && !bad; i++)
        bad = add_domain(w, event_folder_domain(w->events, i), e);
    return bad ? bad : write_events(w, e);
}

static void say(const struct work *w)
{
    const struct trace_losses lost = event_folder_losses(w->events);
    command_fail(0, "wrote %" PRIu64 " events into %s", w->written, w->to);
    if (lost.events)
        command_fail(0, "%" PRIu64 " events were lost while the trace was recorded", lost.events);
    if (lost.cut_packets)
        command_fail(0, "the trace was cut short: the last packet of %" PRIu64 " files is not whole",
                     lost.cut_packets);
}

static int finish(struct work *w, bool made, int bad, const struct error *e)
{
    if (!bad)
        say(w);
    vec_each (struct domain, d, &w->domains)
        lttng_writer_free(d->writer);
    vec_release(&w->domains);
    lttng_names_free(w->names);
    profile_free(w->profile);
    event_folder_close(w->events);
    if (!bad)
        return EXIT_DONE;
    const bool stays = made && trace_dir_remove(w->to);
    return command_fail(EXIT_FAILED, "%s%s%s", e->text, stays ? "; a part is in " : "", stays ? w->to : "");
}

/* Returns whether `to` is the trace, or a folder around it. */
static bool is_around(const char *to, const char *from)
{
    char *outer = realpath(to, NULL), *inner = realpath(from, NULL);
    const size_t n = outer ? strlen(outer) : 0;
    const bool is = n && inner && !strncmp(outer, inner, n) && (inner[n] == '/' || !inner[n]);
    free(outer);
    free(inner);
    return is;
}

static int export(const char *from, const char *to, bool force)
{
    struct work w = {.from = from, .to = to};
    struct error e = {""};
    if (is_around(to, from))
        return command_fail(EXIT_FAILED, "%s is where the exported trace is: write to another folder", to);
    int bad = event_folder_open(&w.events, from, &e);
    if (bad)
        return command_fail(bad == -EINVAL ? EXIT_USAGE : EXIT_FAILED, "%s", e.text);
    bad = source_trace_names(&w.profile, from, &e);
    bad = bad ? bad : trace_dir_make(to, force, &e);
    const bool made = !bad;
    if (!bad) {
        w.names = lttng_names_new(w.profile);
        bad = write_all(&w, &e);
    }
    return finish(&w, made, bad, &e);
}

int export_ctf(const struct command *c, const struct arguments *a)
{
    const char *to = command_value(c, a, "output");
    if (a->n_rest != 1)
        return command_misuse(
            c, a->n_rest ? "too many sources: leave out %s" : "missing folder: --ctf exports a trace, DIR%s",
            a->n_rest ? a->rest[1] : "");
    if (!to || !strcmp(to, "-"))
        return command_misuse(c, "missing folder: --ctf needs -o DIR2");
    if (command_value(c, a, "where"))
        return command_misuse(c, "--ctf writes all events: leave out --where");
    return export(a->rest[0], to, command_value(c, a, "force") != NULL);
}
