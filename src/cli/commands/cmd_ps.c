/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/sigsafe/clock_ns.h"
#include "cli/accounts/rules_note.h"
#include "cli/command.h"
#include "cli/option_values.h"
#include "cli/screen_options.h"
#include "cli/terminal.h"
#include "collect/ledger/ledger_copy.h"
#include "collect/process/container.h"
#include "collect/ledger/ledger_scan.h"
#include "collect/ledger/ledger_seal.h"
#include "collect/ledger/mapped_ledgers.h"
#include "collect/process/proc.h"
#include "collect/accounts/tag_accounts.h"
#include "collect/ledger/ledger_profile.h"
#include "model/table/table.h"
#include "view/text/notes.h"
#include "view/table/table_view.h"

static const struct option_doc options[] = {
    {"prune", 0, NULL, "remove the ledgers of processes that have ended"},
    {"top", 0, "N", "print the N ledgers with most live memory (20 on a terminal, else all); 0: all"},
    SCREEN_OPTIONS,
    {"json", 0, NULL, "print JSON, see allium-json(5)"},
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium ps",
    "list the processes that `allium report PID` can show",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_ps = {
    .name = "ps",
    .usage = "[--prune] [--top N] " SCREEN_USAGE " [--json]",
    .summary = "list all ledgers on this machine: program, process id, age, live memory, losses",
    .examples = examples,
    .options = options,
    .run = run,
};

enum column {
    PID,
    PROGRAM,
    STATE,
    AGE,
    LIVE,
    PEAK,
    SAMPLES,
    LEDGER,
    LOST,
    ACCOUNTS,
    INNER_PID,
    CONTAINER,
    NOTE
};

static const struct table_column columns[] = {
    [PID] = {"pid", TABLE_PLAIN, TABLE_WHOLE},
    [PROGRAM] = {"program", TABLE_PLAIN, TABLE_TEXT},
    [STATE] = {"state", TABLE_PLAIN, TABLE_TEXT},
    [AGE] = {"age", TABLE_DURATION, TABLE_WHOLE},
    [LIVE] = {"live", TABLE_BYTES, TABLE_ESTIMATE},
    [PEAK] = {"peak", TABLE_BYTES, TABLE_ESTIMATE, .drop_rank = 1},
    [SAMPLES] = {"live_samples", TABLE_COUNT, TABLE_WHOLE, .drop_rank = 3},
    [LEDGER] = {"ledger", TABLE_BYTES, TABLE_WHOLE, .drop_rank = 2},
    [LOST] = {"lost", TABLE_COUNT, TABLE_WHOLE},
    [ACCOUNTS] = {"accounts", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true},
    [INNER_PID] = {"container_pid", TABLE_PLAIN, TABLE_WHOLE, .hide_if_empty = true},
    [CONTAINER] = {"container", TABLE_PLAIN, TABLE_TEXT, .hide_if_empty = true},
    [NOTE] = {"note", TABLE_PLAIN, TABLE_TEXT, .wrap = true, .hide_if_empty = true},
};

/* As a report has it; what is mapped runs, even if its exit handlers have run. */
static void add_life(struct table *t, const struct profile_image *i, bool alive)
{
    uint64_t age_ns = i->taken_ns > i->began_ns ? i->taken_ns - i->began_ns : 0;
    if (!alive && i->ended_ns)
        table_text(t, STATE, i->state == PROFILE_IMAGE_DETACHED ? "detached" : "exited");
    if (alive || i->ended_ns)
        table_whole(t, AGE, age_ns);
    else
        table_at_least(t, AGE, age_ns);
}

/* Where it lives, if that is not where we do. */
static void add_container(struct table *t, pid_t pid)
{
    struct buf name = BUF_INIT;
    struct container c = container_of(pid);
    container_name(pid, &c, &name);
    if (name.len)
        table_text(t, CONTAINER, buf_str(&name));
    if (c.pids && c.inner_pid)
        table_whole(t, INNER_PID, (uint64_t)c.inner_pid);
    buf_release(&name);
}

/* What its figures suffer from, in words. */
static void add_note(struct table *t, const struct profile *p, const struct ledger_entry *entry, bool tags,
                     bool sites, bool whole, bool sealed)
{
    const struct profile_image *i = &p->images.at[0];
    const char *full = profile_text(p, i->ledger_full);
    struct buf note = BUF_INIT;
    if (sealed && !*full)
        buf_addstr(&note, "it entered seccomp: its ledger cannot grow");
    if (tags || sites)
        rules_note(entry, tags, sites, whole, &note);
    if (*full)
        buf_printf(&note, "%sthe ledger stopped growing: %s", note.len ? "; " : "", full);
    if (i->losses[PROFILE_LOST_CHILDREN])
        buf_printf(&note, "%s%" PRIu64 " starts unobserved", note.len ? "; " : "",
                   i->losses[PROFILE_LOST_CHILDREN]);
    if (entry->mapped && mapped_ledgers_nameless(&entry->mapped->ledger))
        buf_printf(&note, "%sthe ledger has no file name, and ends with the process", note.len ? "; " : "");
    if (note.len)
        table_text(t, NOTE, buf_str(&note));
    buf_release(&note);
}

/* A ledger that gives no figures; of a process that has ended there is no name either. */
static void add_unread(struct table *t, const struct ledger_entry *entry, const char *why)
{
    struct buf text = BUF_INIT;
    if (entry->alive)
        proc_name(entry->pid, &text);
    if (text.len)
        table_text(t, PROGRAM, buf_str(&text));
    buf_reset(&text);
    buf_printf(&text, "the ledger cannot be read: %s", why);
    table_text(t, NOTE, buf_str(&text));
    buf_release(&text);
}

/* `fd` is what opening it gave. */
static bool has_just_ended(const struct ledger_entry *entry, int fd)
{
    return !entry->path && (fd == -ESTALE || fd == -ESRCH || fd == -ENOENT);
}

static void add_row(struct table *t, const struct ledger_entry *entry, bool whole)
{
    struct ledger_copy copy;
    struct error e = {""};
    int fd = ledger_entry_open(entry);
    if (has_just_ended(entry, fd))
        return;
    table_row(t);
    table_whole(t, PID, (uint64_t)entry->pid);
    table_text(t, STATE, entry->alive ? "running" : "ended");
    if (entry->mapped)
        add_container(t, entry->pid);
    if (fd < 0 || ledger_copy_read(fd, &copy, &e)) {
        add_unread(t, entry, fd < 0 ? strerror(-fd) : e.text);
        if (fd >= 0)
            close(fd);
        return;
    }
    close(fd);
    struct profile *p = ledger_profile(&copy);
    if (!entry->alive)
        profile_end(p);
    const struct profile_image *i = &p->images.at[0];
    struct estimate live = {0}, peak = {0};
    vec_each (const struct profile_cell, c, &p->cells) {
        struct profile_sums sums = profile_live(c);
        profile_estimate_bytes(&live, c, &sums);
        profile_estimate_bytes(&peak, c, &c->at_peak);
    }
    table_text(t, PROGRAM, profile_text(p, i->comm));
    add_life(t, i, entry->alive);
    table_estimate(t, LIVE, &live);
    table_estimate(t, PEAK, &peak);
    table_whole(t, SAMPLES, p->samples.len);
    table_whole(t, LEDGER, i->ledger_bytes);
    table_whole(t, LOST, i->losses[PROFILE_LOST_SAMPLES] + i->losses[PROFILE_LOST_LIVE]);
    bool sites = copy.header.regions[LEDGER_SITES].limit_bytes != 0,
         tags = ledger_copy_has_tags(&copy.header);
    if (sites || tags)
        table_text(t, ACCOUNTS, sites && tags ? "sites, tags" : sites ? "sites" : "tags");
    struct proc_status status;
    bool sealed =
        entry->alive && proc_status(entry->pid, &status) && ledger_seal(entry, &copy.header, &status);
    add_note(t, p, entry, tags, sites, whole, sealed);
    profile_free(p);
    ledger_copy_release(&copy);
}

/* What all places of a ledger of tags hold together: exact, whatever the column is made for. */
static struct estimate live_of(const struct ledger_copy *copy, uint64_t *lost)
{
    struct tags_reading r = {.process = {.pid = 0}};
    struct alloc_texts texts = {.bytes = BUF_INIT};
    tags_from_copy(&r, copy, &texts);
    struct account_sum sum = account_rows_total(&r.rows, ACCOUNT_AFTER);
    *lost = r.process.losses[ACCOUNT_LOST_PLACES] + r.process.losses[ACCOUNT_LOST_OBJECTS];
    tags_reading_release(&r);
    alloc_texts_release(&texts);
    double bytes = (double)account_live_bytes(&sum);
    return (struct estimate){.samples = 1, .exact = 1, .value = bytes, .seen = bytes};
}

static void add_accounts(struct table *t, const struct ledger_entry *entry, bool whole)
{
    struct ledger_copy copy;
    struct error e = {""};
    struct buf note = BUF_INIT;
    uint64_t lost;
    int fd = ledger_entry_open(entry);
    if (has_just_ended(entry, fd))
        return;
    table_row(t);
    table_whole(t, PID, (uint64_t)entry->pid);
    table_text(t, STATE, entry->alive ? "running" : "ended");
    table_text(t, ACCOUNTS, "tags");
    rules_note(entry, true, false, whole, &note);
    if (note.len)
        table_text(t, NOTE, buf_str(&note));
    buf_release(&note);
    if (entry->mapped)
        add_container(t, entry->pid);
    int bad = fd < 0 ? fd : ledger_copy_read(fd, &copy, &e);
    if (fd >= 0)
        close(fd);
    if (bad) {
        add_unread(t, entry, fd < 0 ? strerror(-fd) : e.text);
        return;
    }
    char comm[sizeof(copy.header.comm) + 1] = "";
    memcpy(comm, copy.header.comm, sizeof(copy.header.comm));
    struct estimate live = live_of(&copy, &lost);
    uint64_t now_ns = clock_ns(CLOCK_REALTIME);
    table_text(t, PROGRAM, comm);
    if (entry->alive && now_ns > copy.header.began_realtime_ns)
        table_whole(t, AGE, now_ns - copy.header.began_realtime_ns);
    table_estimate(t, LIVE, &live);
    table_whole(t, LEDGER, copy.header.ready_bytes);
    table_whole(t, LOST, lost);
    ledger_copy_release(&copy);
}

/* A process with the agent in it that has no ledger. */
static void add_without(struct table *t, pid_t pid)
{
    struct buf comm = BUF_INIT;
    table_row(t);
    table_whole(t, PID, (uint64_t)pid);
    proc_name(pid, &comm);
    table_text(t, PROGRAM, buf_str(&comm));
    table_text(t, STATE, "unsampled");
    add_container(t, pid);
    buf_release(&comm);
}

struct pruned {
    unsigned removed, left;
};

static void prune_list(const struct ledger_list *list, bool tags, struct pruned *n)
{
    vec_each (const struct ledger_entry, entry, list) {
        if (entry->tags != tags)
            continue;
        n->left += !entry->alive && !entry->sure;
        if (entry->alive || !entry->sure)
            continue;
        ledger_remove(entry->path);
        n->removed++;
        /* A recorder's own directory goes with its last ledger. */
        char *slash = strrchr(entry->path, '/');
        *slash = '\0';
        const char *folder = strrchr(entry->path, '/');
        if (folder && !strncmp(folder + 1, LEDGER_RUN_PREFIX, strlen(LEDGER_RUN_PREFIX)))
            ledger_dir_remove(entry->path);
        *slash = '/';
    }
}

static int prune(const struct ledger_scan *scan)
{
    struct pruned n = {0};
    prune_list(&scan->list, false, &n);
    prune_list(&scan->tags, true, &n);
    fprintf(stderr, "allium: removed %u ledger%s\n", n.removed, n.removed == 1 ? "" : "s");
    if (n.left)
        fprintf(stderr,
                "allium: kept %u that may still be in use: checking that requires root with CAP_LEASE, and "
                "fs.leases-enable=1\n",
                n.left);
    return EXIT_DONE;
}

static void say_unreadable(unsigned n)
{
    fprintf(stderr,
            "allium: %u process%s of other users could not be read: this requires root with CAP_SYS_PTRACE\n",
            n, n == 1 ? "" : "es");
}

/* Ledgers of one amount keep the order in which they were found. `top` 0: all. */
static void keep_largest(struct table *t, uint32_t top)
{
    table_sort(t, LIVE, TABLE_USUAL);
    if (top)
        table_cut(t, top);
}

static void write_table(struct sink *out, struct table *t, uint32_t top)
{
    struct text_style style = terminal_style(stdout);
    struct buf notes = BUF_INIT;
    uint32_t all = table_rows(t);
    keep_largest(t, top);
    table_view_text(out, t, &style);
    notes_add_cut(&notes, table_rows(t), all);
    command_notes(&notes);
}

static int run(int argc, char **argv)
{
    struct arguments a;
    struct ledger_scan scan;
    uint32_t top = terminal_rows(stdout) ? OPTION_VALUES_TOP_DEFAULT : 0;
    int code = command_parse(&command_ps, argc, argv, false, &a);
    if (code < 0)
        code = option_values_parse_top(&command_ps, command_value(&command_ps, &a, "top"), &top);
    if (code >= 0)
        return code;
    if (command_value(&command_ps, &a, "prune") && command_value(&command_ps, &a, "top"))
        return command_misuse(
            &command_ps, "--prune removes the ledgers of all processes that have ended: leave out --top");
    if (a.n_rest)
        return command_misuse(&command_ps, "too many arguments: leave out %s", a.rest[0]);
    ledger_scan_all(&scan);
    if (command_value(&command_ps, &a, "prune")) {
        code = prune(&scan);
        ledger_scan_release(&scan);
        return code;
    }
    bool json = command_value(&command_ps, &a, "json") != NULL;
    struct table *t = table_new("ps", 1, columns, sizeof(columns) / sizeof(*columns));
    vec_each (const struct ledger_entry, entry, &scan.list)
        add_row(t, entry, json);
    vec_each (const struct ledger_entry, entry, &scan.tags)
        if (entry->tags) /* else it has its row */
            add_accounts(t, entry, json);
    vec_each (const pid_t, pid, &scan.without)
        add_without(t, *pid);
    struct sink out = sink_to_file(stdout);
    if (json && command_value(&command_ps, &a, "top"))
        keep_largest(t, top);
    if (json)
        table_view_json(&out, t);
    else if (table_rows(t))
        write_table(&out, t, top);
    else
        fprintf(stderr, "allium: no ledgers: no process runs with the agent, or none has a sample yet\n");
    table_free(t);
    if (scan.unreadable && !proc_may_see_all())
        say_unreadable(scan.unreadable);
    if (scan.stuck)
        fprintf(stderr, "allium: %u process%s could not be read: %s locked, or too large\n", scan.stuck,
                scan.stuck == 1 ? "" : "es",
                scan.stuck == 1 ? "its list of mappings is" : "their lists of mappings are");
    ledger_scan_release(&scan);
    return command_written(&out, EXIT_DONE);
}
