/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/units.h"
#include "cli/command.h"
#include "collect/control.h"
#include "collect/ledger_copy.h"
#include "collect/ledger_scan.h"
#include "query/query.h"

static const struct option_doc options[] = {
    {"where", 0, "QUERY", "all processes that fit, by comm and pid: 'comm:nginx !pid:4711'"},
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium set 4711 period=64K",
    "eight times as many samples from now on",
    "allium set --where comm:nginx off",
    "all nginx processes: no new samples, until `on`",
    "allium set 4711 free-stacks=all",
    "the stack of each sampled free, for a use after free",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_set = {
    .name = "set",
    .usage = "[PID] [--where QUERY] ACTION...",
    .summary = "change how a running process is sampled: period=SIZE, on, off, free-stacks=all",
    .examples = examples,
    .options = options,
    .run = run,
};

/* What the actions together do to the control word. */
struct change {
    uint64_t clear, set;
};

enum field { COMM, PID };
static const struct query_field fields[] = {
    [COMM] = {"comm", QUERY_TEXT, "name of the process"},
    [PID] = {"pid", QUERY_NUMBER, "process id"},
};

struct subject {
    const char *comm;
    int pid;
};

static void look_up(void *subject, size_t field, struct query_probe *probe)
{
    const struct subject *s = subject;
    if (field == COMM)
        query_offer_text(probe, s->comm);
    else
        query_offer_number(probe, s->pid);
}

static void add(struct change *c, uint64_t clear, uint64_t set)
{
    c->clear |= clear;
    c->set = (c->set & ~clear) | set;
}

/* -1: fine; else the exit code. */
static int parse_action(const char *text, struct change *c)
{
    uint64_t period;
    if (!strcmp(text, "on"))
        add(c, LEDGER_CONTROL_OFF, 0);
    else if (!strcmp(text, "off"))
        add(c, LEDGER_CONTROL_OFF, LEDGER_CONTROL_OFF);
    else if (!strcmp(text, "free-stacks=all"))
        add(c, LEDGER_CONTROL_FREE_STACKS, LEDGER_CONTROL_FREE_STACKS);
    else if (!strcmp(text, "free-stacks=some"))
        add(c, LEDGER_CONTROL_FREE_STACKS, 0);
    else if (!strcmp(text, "period=default"))
        add(c, LEDGER_CONTROL_PERIOD, 0);
    else if (!strncmp(text, "period=", 7)) {
        if (units_parse_size(text + 7, &period) || !period || period > LEDGER_PERIOD_MAX)
            return command_misuse(&command_set, "%s: a period is a size from 1 to 1T, or default", text);
        add(c, LEDGER_CONTROL_PERIOD, period);
    } else
        return command_misuse(
            &command_set,
            "%s is no action: it can be period=SIZE, period=default, on, off, free-stacks=all or "
            "free-stacks=some",
            text);
    return -1;
}

static void say(int pid, const char *comm, uint64_t word)
{
    char period[UNITS_TEXT_BYTES];
    uint64_t bytes = word & LEDGER_CONTROL_PERIOD;
    printf("%d (%s): %s, period %s, stacks of %s sampled frees\n", pid, comm,
           word & LEDGER_CONTROL_OFF ? "off" : "on",
           bytes ? units_format_size(period, (double)bytes) : "as started",
           word & LEDGER_CONTROL_FREE_STACKS ? "all" : "some");
}

/* 1: not meant; 0: done; else -errno with a line. */
static int change_one(const struct ledger_entry *entry, int pid, const struct query *where,
                      const struct change *c, struct error *e)
{
    struct ledger_header h;
    char comm[sizeof(h.comm) + 1] = "";
    uint64_t word;
    if (!entry->alive || (pid && entry->pid != pid))
        return 1;
    int fd = ledger_entry_open(entry);
    if (fd >= 0 && !ledger_copy_header(fd, &h, e))
        memcpy(comm, h.comm, sizeof(h.comm));
    if (fd >= 0)
        close(fd);
    struct subject s = {.comm = comm, .pid = entry->pid};
    if (where && !query_match(where, look_up, &s))
        return 1;
    int bad = control_change(entry, c->clear, c->set, &word, e);
    if (!bad)
        say(entry->pid, comm, word);
    return bad;
}

static int change_all(int pid, const struct query *where, const struct change *c)
{
    struct ledger_scan scan;
    struct error e = {""};
    unsigned changed = 0;
    int code = EXIT_DONE;
    ledger_scan_all(&scan);
    vec_each (const struct ledger_entry, entry, &scan.list) {
        int bad = change_one(entry, pid, where, c, &e);
        changed += bad == 0;
        if (bad < 0)
            code = command_fail(EXIT_FAILED, "%s", e.text);
    }
    ledger_scan_release(&scan);
    if (!changed && code == EXIT_DONE && pid)
        code = command_fail(
            EXIT_FAILED,
            "no running process %d%s has a ledger that is yours: either it was not started with the "
            "agent, or nothing of it was sampled yet (allium ps lists those that have one)",
            pid, where ? " that fits --where" : "");
    else if (!changed && code == EXIT_DONE)
        code =
            command_fail(EXIT_FAILED, "no running process with a ledger fits --where (allium ps lists them)");
    return code;
}

static int run(int argc, char **argv)
{
    struct arguments a;
    struct error e = {""};
    struct change c = {0};
    struct query *where = NULL;
    int code = command_parse(&command_set, argc, argv, false, &a), first = 0;
    if (code >= 0)
        return code;
    const char *text = command_value(&command_set, &a, "where");
    int pid = a.n_rest && !a.rest[0][strspn(a.rest[0], "0123456789")] ? atoi(a.rest[0]) : 0;
    if (pid)
        first = 1;
    else if (!text)
        return command_misuse(&command_set, "a process id, please, or --where");
    if (first == a.n_rest)
        return command_misuse(&command_set, "an action, please: period=SIZE, on, off, free-stacks=all");
    for (int i = first; i < a.n_rest && code < 0; i++)
        code = parse_action(a.rest[i], &c);
    if (code < 0 && text && query_parse(&where, text, fields, sizeof(fields) / sizeof(*fields), &e, NULL))
        code = command_misuse(&command_set, "%s", e.text);
    struct sink out = sink_to_file(stdout);
    if (code < 0)
        code = command_written(&out, change_all(pid, where, &c));
    query_free(where);
    return code;
}
