/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "allium_version.h"
#include "base/buf.h"
#include "cli/command.h"
#include "cli/debuginfod.h"
#include "cli/option_values.h"
#include "cli/source.h"
#include "cli/trace/trace_store.h"
#include "cli/wrapper_lists.h"
#include "collect/accounts/site_accounts.h"
#include "collect/accounts/tag_accounts.h"
#include "collect/ledger/profile_names.h"
#include "store/account_tables.h"
#include "store/recording.h"

static const struct option_doc options[] = {
    {"output", 'o', "FILE", "write the recording to FILE (NAME.PID.snapshot.allium)"},
    {"force", 0, NULL, "replace FILE if it exists"},
    {"trace", 0, NULL, "store also the events in the rings of the process: FILE is the folder of a trace"},
    {"last", 0, "DURATION", "with --trace, store only events of the last DURATION"},
    DEBUGINFOD_OPTION,
    SOURCE_PID_OPTION,
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium snapshot 4711 && allium report",
    "store the memory of process 4711 now, and show it",
    "allium snapshot 4711 --trace --last 5s -o t && babeltrace2 t/ust",
    "store and print its allocations of the last 5 s, see allium-trace(1)",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_snapshot = {
    .name = "snapshot",
    .usage = "PID|-p PID [-o FILE] [--force] [--trace [--last DURATION]] [--debuginfod DURATION]",
    .summary = "store the ledger of a process, running or ended, in a recording; also its last events",
    .examples = examples,
    .options = options,
    .run = run,
};

enum { TAGS, SITES, KINDS };
static const char *const kinds[KINDS] = {[TAGS] = "tags", [SITES] = "sites"};

/* What there is of a process: one of it at least. */
struct found {
    struct profile *profile;         /* NULL: no ledger of samples */
    struct accounts accounts[KINDS]; /* no process: none of that kind */
    struct alloc_texts texts;
};

static int put_profile(struct recording *r, const struct profile *p, struct error *e)
{
    const struct profile_image *i = &p->images.at[0];
    int bad = recording_set_text(r, RECORDING_COMMAND, profile_text(p, i->args), e);
    if (!bad)
        bad = recording_set_number(r, RECORDING_STARTED, (int64_t)i->began_ns, e);
    if (!bad)
        bad = recording_put_image(r, p, true, e);
    if (!bad)
        bad = recording_set_number(r, RECORDING_ENDED, (int64_t)i->taken_ns, e);
    return bad;
}

static int put_accounts(struct recording *r, const struct found *f, int kind, struct error *e)
{
    const struct account_process *p = f->accounts[kind].processes.at;
    if (!p)
        return 0;
    struct accounts_keeper *k = accounts_keeper_new(r, kinds[kind]);
    int bad = accounts_keeper_put(k, &f->accounts[kind], &f->texts, e);
    accounts_keeper_free(k);
    if (!bad && !f->profile)
        bad = recording_set_text(r, RECORDING_COMMAND, p->comm, e);
    if (!bad && !f->profile)
        bad = recording_set_number(r, RECORDING_STARTED, (int64_t)p->began_ns, e);
    return bad ? bad : recording_set_number(r, RECORDING_ENDED, (int64_t)p->taken_ns, e);
}

static int store(const struct found *f, const char *path, bool force, struct error *e)
{
    struct recording *r;
    int bad = recording_create(&r, path, force, e);
    if (bad)
        return bad;
    bad = recording_set_text(r, RECORDING_VERSION, ALLIUM_VERSION, e);
    if (!bad && f->profile)
        bad = put_profile(r, f->profile, e);
    for (int kind = 0; kind < KINDS && !bad; kind++)
        bad = put_accounts(r, f, kind, e);
    int closed = recording_close(r, bad ? NULL : e);
    return bad ? bad : closed;
}

/* Reports why a process has no ledger. */
static int find(struct found *f, pid_t pid, struct error *e)
{
    char *cache = profile_names_cache_dir();
    struct symbols *symbols = symbols_new(cache);
    struct wrappers wrappers = {0};
    bool any = !tags_read(&f->accounts[TAGS], &f->texts, pid, NULL, symbols, NULL);
    int bad = source_read_ledger(&f->profile, pid, e);
    if (!bad) { /* sites are in the same ledger */
        wrapper_lists_read(&wrappers);
        any |= !sites_read(&f->accounts[SITES], &f->texts, pid, NULL, symbols, &wrappers, NULL);
        wrappers_release(&wrappers);
    }
    symbols_free(symbols);
    free(cache);
    if (bad)
        f->profile = NULL;
    return any ? 0 : bad;
}

static void release(struct found *f)
{
    profile_free(f->profile);
    for (int kind = 0; kind < KINDS; kind++)
        accounts_release(&f->accounts[kind]);
    alloc_texts_release(&f->texts);
}

static int store_snapshot(const struct found *f, pid_t pid, const char *output, bool force)
{
    struct buf path = BUF_INIT;
    struct error e = {""};
    int code = EXIT_DONE;
    const struct profile *p = f->profile;
    const struct accounts *a = &f->accounts[f->accounts[TAGS].processes.len ? TAGS : SITES];
    if (output)
        buf_addstr(&path, output);
    else
        buf_printf(&path, "%s.%d.snapshot.allium",
                   p ? profile_text(p, p->images.at[0].comm) : a->processes.at[0].comm, (int)pid);
    if (store(f, buf_str(&path), force, &e))
        code = command_fail(EXIT_FAILED, "%s", e.text);
    else
        command_fail(0, "wrote %s; show it with: allium %s %s", buf_str(&path),
                     p ? "report" : kinds[a - f->accounts], buf_str(&path));
    buf_release(&path);
    return code;
}

/* The events of a process, and beside them its recording, if there is one. */
static int store_trace(const struct arguments *a, pid_t pid, uint64_t last_ns)
{
    struct found f = {.texts = {.bytes = BUF_INIT}};
    struct buf path = BUF_INIT;
    struct error e = {""};
    char *folder;
    int code = trace_store_write(
        &(struct trace_store_options){.pid = pid,
                                      .output = command_value(&command_snapshot, a, "output"),
                                      .force = command_value(&command_snapshot, a, "force"),
                                      .last_ns = last_ns},
        &folder);
    if (code != EXIT_DONE)
        return code;
    buf_printf(&path, "%s/profile.allium", folder);
    if (!find(&f, pid, &e) && store(&f, buf_str(&path), false, &e))
        code = command_fail(EXIT_FAILED, "%s", e.text);
    release(&f);
    buf_release(&path);
    free(folder);
    return code;
}

static int run(int argc, char **argv)
{
    struct arguments a;
    struct error e = {""};
    struct found f = {.texts = {.bytes = BUF_INIT}};
    int code = command_parse(&command_snapshot, argc, argv, false, &a);
    if (code >= 0)
        return code;
    if (a.n_rest != 1)
        return command_misuse(&command_snapshot, "missing PID, or more than one: use allium snapshot PID");
    pid_t pid;
    code = source_parse_pid(&command_snapshot, a.rest[0], &pid);
    if (code >= 0)
        return code;
    const char *last = command_value(&command_snapshot, &a, "last");
    uint64_t last_ns = 0;
    code = option_values_parse_time(&command_snapshot, "last", last, 1, &last_ns);
    if (code >= 0)
        return code;
    if (command_value(&command_snapshot, &a, "trace"))
        return store_trace(&a, pid, last_ns);
    if (last)
        return command_misuse(&command_snapshot, "--last needs --trace: use --trace --last %s", last);
    if (find(&f, pid, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    code = store_snapshot(&f, pid, command_value(&command_snapshot, &a, "output"),
                          command_value(&command_snapshot, &a, "force") != NULL);
    release(&f);
    return code;
}
