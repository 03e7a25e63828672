/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/units.h"
#include "cli/debuginfod.h"
#include "cli/source_trace.h"
#include "cli/sys/kernel_marks.h"
#include "collect/process/container.h"
#include "collect/ledger/ledger_copy.h"
#include "collect/ledger/ledger_scan.h"
#include "collect/ledger/ledger_profile.h"
#include "collect/ledger/ledger_seal.h"
#include "collect/ledger/mapped_ledgers.h"
#include "collect/ledger/profile_names.h"
#include "collect/process/proc.h"
#include "collect/process/thread_names.h"
#include "collect/trace/event_folder.h"
#include "store/profile_load.h"
#include "sys/tool.h"

#define SUFFIX      ".allium"
#define PIDS_LISTED 8

/* The newest file of that name in the current directory, as a heap string. */
static char *newest_recording(void)
{
    DIR *d = opendir(".");
    char *best = NULL;
    struct timespec best_time = {0};
    for (struct dirent *entry; d && (entry = readdir(d));) {
        size_t len = strlen(entry->d_name), suffix = strlen(SUFFIX);
        struct stat st;
        if (len <= suffix || strcmp(entry->d_name + len - suffix, SUFFIX) ||
            fstatat(dirfd(d), entry->d_name, &st, 0) || !S_ISREG(st.st_mode))
            continue;
        bool newer = st.st_mtim.tv_sec != best_time.tv_sec ? st.st_mtim.tv_sec > best_time.tv_sec
                                                           : st.st_mtim.tv_nsec > best_time.tv_nsec;
        if (best && !newer)
            continue;
        free(best);
        best = mem_strdup(entry->d_name);
        best_time = st.st_mtim;
    }
    if (d)
        closedir(d);
    return best;
}

/* Why there is no ledger of that process. */
static int explain_none(int pid, bool unreadable, struct error *e)
{
    int bad = ledger_scan_explain(pid, unreadable, "ledger", e);
    if (bad)
        return bad;
    if (proc_has_agent(pid))
        return error_set(
            e, ENOENT,
            "process %d has no sample yet: wait until it has allocated more, or restart it with a smaller "
            "--period",
            pid);
    return error_set(
        e, ENOENT,
        "process %d is not observed: restart it under allium run, or with the environment that allium env "
        "prints",
        pid);
}

/* A copy of the ledger of a process: the live one, else the one that is left of it. */
static int copy_ledger(int pid, struct ledger_copy *copy, bool *alive, struct error *e)
{
    struct ledger_scan scan;
    int bad;
    ledger_scan_process(&scan, pid);
    const struct ledger_entry *found = ledger_scan_latest(&scan.list);
    if (found) {
        int fd = ledger_entry_open(found);
        *alive = found->alive;
        if (fd >= 0)
            ledger_seal_opened(found, fd);
        bad = fd < 0 ? error_set(e, -fd, "%s of process %d: %s",
                                 found->path ? found->path : found->mapped->ledger.path, pid, strerror(-fd))
                     : ledger_copy_read(fd, copy, e);
        if (fd >= 0)
            close(fd);
    } else {
        bad = explain_none(pid, scan.unreadable, e);
    }
    ledger_scan_release(&scan);
    return bad;
}

int source_read_ledger(struct profile **p, int pid, struct error *e)
{
    bool alive = false;
    struct ledger_copy copy;
    struct container_roots roots = {0};
    const char *root = "";
    int bad = copy_ledger(pid, &copy, &alive, e);
    if (bad)
        return bad;
    *p = ledger_profile(&copy);
    ledger_copy_release(&copy);
    if (alive) {
        thread_names_read(NULL, *p, pid);
        struct buf args = BUF_INIT;
        struct proc_status status;
        proc_status(pid, &status);
        proc_command_line(pid, 1000, &args);
        uint32_t text = profile_string(*p, buf_str(&args));
        (*p)->images.at[0].args = text;
        (*p)->images.at[0].state = PROFILE_IMAGE_RUNNING;
        (*p)->images.at[0].rss_anon_bytes = status.rss_anon_bytes;
        buf_release(&args);
        (*p)->images.at[0].pid = pid; /* not what it is called where it runs */
        root = container_root(&roots, pid);
    } else {
        profile_end(*p);
    }
    char *cache = profile_names_cache_dir();
    struct symbols *symbols = symbols_new(cache);
    symbols_use_servers(symbols, debuginfod_servers());
    profile_names_apply(symbols, *p, root);
    symbols_free(symbols);
    container_roots_release(&roots);
    debuginfod_report();
    free(cache);
    return 0;
}

static int open_pid(struct source *s, const char *text, struct error *e)
{
    pid_t pid = source_pid(text);
    if (!pid)
        return error_set(e, EINVAL, "%s is not a valid process id; for a file of that name, write ./%s", text,
                         text);
    int bad = source_read_ledger(&s->profile, pid, e);
    if (!bad) {
        struct buf label = BUF_INIT;
        buf_printf(&label, "process %d", (int)pid);
        s->label = buf_detach(&label);
    }
    return bad;
}

/* At a moment in the past there may be none yet, or only such as nothing had been kept of. */
static bool has_figures(const struct profile *p)
{
    vec_each (const struct profile_image, i, &p->images)
        if (!i->past || i->taken_ns > i->began_ns)
            return true;
    return false;
}

static void add_rows(struct buf *text, const char *path, const char *tool, size_t len)
{
    buf_printf(text, "%s has no heap profile, but rows of ", path);
    sys_tool_add_words(text, tool, len);
    buf_addstr(text, ": use allium ");
    sys_tool_add_words(text, tool, len);
    buf_printf(text, " --from %s", path);
}

/* A recording without a heap profile may have rows of the machine's, or accounts. 0, or -ENODATA with a line. */
static int refuse_rows(const struct profile *p, const char *path, struct error *e)
{
    struct recording_summary summary;
    struct buf text = BUF_INIT;
    if (p->images.len || p->images_dropped || recording_summarize(&summary, path, NULL))
        return 0;
    bool has_profile = summary.images || summary.images_dropped; /* but not at this moment */
    const char *accounts = has_profile ? NULL : recording_accounts(&summary, 0);
    if (accounts)
        buf_printf(&text, "%s has no heap profile, but accounts of %s: use allium %s %s", path, accounts,
                   accounts, path);
    vec_each (const struct recording_fact, f, &summary.facts) {
        size_t len = strlen(f->key);
        if (!has_profile && !text.len && len > 9 && !strncmp(f->key, "sys_", 4) &&
            !strcmp(f->key + len - 5, "_rung"))
            add_rows(&text, path, f->key + 4, len - 9);
    }
    recording_summary_release(&summary);
    int bad = text.len ? error_set(e, ENODATA, "%s", buf_str(&text)) : 0;
    buf_release(&text);
    return bad;
}

int source_when(const char *path, const char *time, uint64_t *at_ns, struct error *e)
{
    uint64_t first, last, after;
    const char *dots = strstr(time, "..");
    if (dots)
        return error_set(
            e, EINVAL,
            "invalid time '@%s': only a trace (allium trace) has spans; compare two moments: allium "
            "diff %s@%.*s %s@%s",
            time, path, (int)(dots - time), time, path, dots + 2);
    if (units_parse_duration(time, &after))
        return error_set(
            e, EINVAL, "invalid time '@%s': use a duration since the beginning, such as @10m or @1.5s", time);
    int bad = recording_times(path, &first, &last, e);
    if (bad)
        return bad;
    *at_ns = first + after;
    if (*at_ns <= last)
        return 0;
    char length[UNITS_TEXT_BYTES];
    return error_set(e, ERANGE, "%s ends %s after it began, before @%s: use an earlier time", path,
                     units_format_duration(length, (double)(last - first)), time);
}

static int open_file(struct source *s, const char *path, const char *time, unsigned without, struct error *e)
{
    uint64_t at, *when = time ? &at : NULL;
    struct buf label = BUF_INIT;
    buf_printf(&label, "%s%s%s", path, time ? "@" : "", time ? time : "");
    s->label = buf_detach(&label);
    if (event_folder_is(path))
        return source_trace_read(&s->profile, path, time, e);
    int bad = time ? source_when(path, time, &at, e) : 0;
    if (bad)
        return bad;
    bad = recording_load_without(&s->profile, path, when, without, e);
    bad = bad ? bad : refuse_rows(s->profile, path, e);
    if (bad || !when || has_figures(s->profile))
        return bad;
    return error_set(e, ERANGE, "%s has no snapshot at @%s or earlier: use a later time", path, time);
}

enum source_kind source_kind(const char *text)
{
    struct stat st;
    if (text && *text && !text[strspn(text, "0123456789")])
        return SOURCE_PROCESS;
    if (!text || !stat(text, &st))
        return SOURCE_FILE;
    return strrchr(text, '@') ? SOURCE_MOMENT : SOURCE_FILE;
}

pid_t source_pid(const char *text)
{
    errno = 0;
    long pid = text[strspn(text, "0123456789")] ? 0 : strtol(text, NULL, 10);
    return errno || pid > INT32_MAX ? 0 : (pid_t)pid;
}

/* Appends the ids of all running processes of that name; nothing if there is none. */
static void add_pids_of(struct buf *line, const char *name)
{
    struct buf pids = BUF_INIT;
    unsigned n = *name && !strchr(name, '/') ? proc_pids_named(name, PIDS_LISTED, &pids) : 0;
    if (n)
        buf_printf(line, "; running processes named %s: %s%s%s", name, buf_str(&pids),
                   n > PIDS_LISTED ? ", and others: pgrep " : "", n > PIDS_LISTED ? name : "");
    buf_release(&pids);
}

int source_parse_pid(const struct command *c, const char *text, pid_t *pid)
{
    *pid = source_pid(text);
    if (*pid)
        return -1;
    struct buf pids = BUF_INIT;
    add_pids_of(&pids, text);
    int code =
        command_misuse(c, "invalid process id '%s': use the number of a process%s", text, buf_str(&pids));
    buf_release(&pids);
    return code;
}

int source_fail(int bad, const struct error *e)
{
    return command_fail(bad == -EINVAL ? EXIT_USAGE : EXIT_FAILED, "%s", e->text);
}

int source_file(const char *text, char **path, struct error *e)
{
    *path = NULL;
    if (source_kind(text) != SOURCE_FILE || (text && event_folder_is(text)))
        return 0;
    *path = text ? mem_strdup(text) : newest_recording();
    if (*path)
        return 0;
    return error_set(e, ENOENT,
                     "no recording (*" SUFFIX
                     ") in this directory: give a file or a process id, or record with "
                     "`allium run -- PROGRAM`");
}

int source_moment(const char *text, char **path, const char **time, struct error *e)
{
    const char *at = strrchr(text, '@');
    *time = at + 1;
    if (at == text)
        return source_file(NULL, path, e);
    *path = mem_strndup(text, (size_t)(at - text));
    return 0;
}

static const char *process_accounts_alone(const char *text)
{
    struct ledger_scan scan;
    ledger_scan_process(&scan, source_pid(text));
    bool alone = scan.tags.len && !scan.list.len;
    ledger_scan_release(&scan);
    return alone ? "tags" : NULL;
}

const char *source_accounts_alone(const char *text)
{
    struct recording_summary summary;
    if (source_kind(text) == SOURCE_PROCESS)
        return process_accounts_alone(text);
    struct error e;
    const char *found = NULL, *time;
    char *path;
    if (source_kind(text) != SOURCE_MOMENT)
        path = mem_strdup(text);
    else if (source_moment(text, &path, &time, &e))
        return NULL;
    if (!recording_summarize(&summary, path, NULL)) {
        const char *kind = summary.images || summary.images_dropped ? NULL : recording_accounts(&summary, 0);
        found = !kind ? NULL : strcmp(kind, "sites") ? "tags" : "sites";
        recording_summary_release(&summary);
    }
    free(path);
    return found;
}

void source_suggest_pids(const char *text, struct error *e)
{
    struct buf line = BUF_INIT;
    if (text)
        add_pids_of(&line, text);
    size_t len = strlen(e->text);
    snprintf(e->text + len, sizeof(e->text) - len, "%s", buf_str(&line));
    buf_release(&line);
}

static int open_source(struct source *s, const char *text, unsigned without, struct error *e)
{
    char *path;
    *s = (struct source){0};
    int bad = source_file(text, &path, e);
    if (bad)
        return bad;
    if (path) {
        bad = open_file(s, path, NULL, without, e);
    } else if (source_kind(text) == SOURCE_PROCESS) {
        bad = open_pid(s, text, e);
    } else if (source_kind(text) == SOURCE_FILE) { /* a trace */
        bad = open_file(s, text, NULL, without, e);
    } else {
        const char *time;
        bad = source_moment(text, &path, &time, e);
        bad = bad ? bad : open_file(s, path, time, without, e);
    }
    s->path = path;
    if (bad && path && source_kind(text) == SOURCE_FILE)
        source_suggest_pids(text, e);
    if (bad)
        source_release(s);
    return bad;
}

int source_open(struct source *s, const char *text, struct error *e)
{
    return open_source(s, text, RECORDING_MOMENTS, e);
}

int source_open_moments(struct source *s, const char *text, struct error *e)
{
    int bad = open_source(s, text, 0, e);
    if (!bad && s->path && profile_is_of_kernel(s->profile))
        kernel_marks_add(s->profile, s->path);
    return bad;
}

int source_open_figures(struct source *s, const char *text, struct error *e)
{
    return open_source(s, text, RECORDING_POINTS | RECORDING_LIFETIMES | RECORDING_MOMENTS, e);
}

void source_release(struct source *s)
{
    profile_free(s->profile);
    free(s->label);
    free(s->path);
    *s = (struct source){0};
}
