/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/sigsafe/clock_ns.h"
#include "base/units.h"
#include "cli/accounts/set_rules.h"
#include "cli/command.h"
#include "cli/option_values.h"
#include "cli/source.h"
#include "collect/ledger/control_events.h"
#include "collect/ledger/control_write.h"
#include "collect/ledger/ledger_copy.h"
#include "collect/ledger/ledger_scan.h"
#include "model/accounts/accounts.h"
#include "query/query.h"
#include "collect/trace/trace_switch.h"

static const struct option_doc options[] = {
    {"where", 0, "QUERY",
     "select processes by comm and pid, or tags and sites by class, name, func, file ..."},
    {"for", 0, "DURATION", "end actions on tags and sites after DURATION"},
    SOURCE_PID_OPTION,
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium set 4711 period=64K",
    "take eight times as many samples from now on",
    "allium set --where comm:nginx off",
    "stop sampling and counting in all nginx processes, until `on`",
    "allium set 4711 free-stacks=all",
    "keep the stack of each sampled free, to find a use after free",
    "allium set 4711 trace=off",
    "write no events, in a process that allium trace or allium env --trace has started",
    "allium set 4711 'trace=shop:*,!shop:noisy'",
    "write these events of a program with <allium/event.h>",
    "allium set 4711",
    "show the settings of a process",
    "allium set 4711 --where 'func:parse_*' stacks --for 60s",
    "count the callers of these functions for a minute, in a program with tags or under run --sites",
    "allium set 4711 --where class:cache fail=every:100",
    "let one allocation in a hundred of these tags fail",
    NULL,
};

static void list_actions(void)
{
    printf("\nactions for processes:\n"
           "  period=SIZE, period=default              take a sample for each SIZE bytes on average\n"
           "  off, on                                  stop or start sampling and counting\n"
           "  free-stacks=all, free-stacks=some        keep the stacks of all sampled frees, or of some\n"
           "  trace=on, trace=off                      write events for allium trace and snapshot --trace, "
           "or not\n"
           "  trace=LIST                               write these: alloc, user, PROVIDER:NAME, ...\n"
           "\nactions for the tags that match --where:\n"
           "  off, on                                  stop or start counting\n"
           "  stacks, stacks=off                       count each call by stack; also for sites (--sites)\n"
           "  latency, latency=off                     measure the duration of each call\n"
           "  fail=once, fail=nth:N, fail=every:N, fail=p:CHANCE, fail=off\n"
           "                                           let calls fail\n");
}

static int run(int argc, char **argv);

const struct command command_set = {
    .name = "set",
    .usage = "[PID|-p PID] [--where QUERY] [--for DURATION] [ACTION...]",
    .summary = "change what is observed of a running process: samples, tags, sites",
    .examples = examples,
    .options = options,
    .more = list_actions,
    .run = run,
};

/* What the actions together do: to the control word of an agent, and to tags. */
struct change {
    uint64_t clear, set;
    const char *trace; /* "on", "off" or a list of events; NULL: as before */
    bool agent;        /* something that no tag can do */
    bool only_agent;   /* something that only the agent can do, and no library of the program */
    struct set_rules tags;
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

static int parse_trace(const char *value, struct change *c)
{
    const bool is_switch = !strcmp(value, "on") || !strcmp(value, "off");
    const char *mistake = is_switch ? NULL : event_list_mistake(value);
    c->trace = value;
    c->agent = true;
    if (!mistake)
        return 1;
    command_misuse(&command_set, "invalid trace=%s: use on, off or a list of events; %s", value, mistake);
    return -1;
}

/* Parses an action of the agent. 1: it is one; 0: it is not; -1: its value is invalid, and a line was printed. */
static int parse_agent(const char *text, struct change *c)
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
    else if (!strncmp(text, "trace=", 6))
        return parse_trace(text + 6, c);
    else if (!strcmp(text, "period=default"))
        add(c, LEDGER_CONTROL_PERIOD, 0);
    else if (strncmp(text, "period=", 7))
        return 0;
    else if (units_parse_size(text + 7, &period) || !period || period > LEDGER_PERIOD_MAX) {
        command_misuse(&command_set, "invalid %s: use a size from 1 to 1T, or default", text);
        return -1;
    } else {
        add(c, LEDGER_CONTROL_PERIOD, period);
    }
    c->agent |= text[1] != 'n' && text[1] != 'f';
    c->only_agent = true;
    return 1;
}

/* -1: fine; else the exit code. */
static int parse_action(const char *text, struct change *c)
{
    int agent = parse_agent(text, c), tags = agent < 0 ? 0 : set_rules_parse(&c->tags, text);
    if (agent < 0 || tags < 0)
        return EXIT_USAGE;
    if (agent || tags)
        return -1;
    return command_misuse(
        &command_set,
        "unknown action '%s': use period=SIZE, period=default, on, off, free-stacks=all, "
        "free-stacks=some, trace=on, trace=off, trace=LIST, stacks, latency, fail=HOW, stacks=off, "
        "latency=off or fail=off",
        text);
}

static void say(const struct ledger_entry *entry, const char *comm, uint64_t word,
                const struct trace_switch *events)
{
    char period[UNITS_TEXT_BYTES];
    struct buf b = BUF_INIT;
    uint64_t bytes = word & LEDGER_CONTROL_PERIOD;
    if (!entry->tags)
        buf_printf(&b, "%s, period %s, stacks of %s sampled frees", word & LEDGER_CONTROL_OFF ? "off" : "on",
                   bytes ? units_format_size(period, (double)bytes) : "as started",
                   word & LEDGER_CONTROL_FREE_STACKS ? "all" : "some");
    if (events) {
        buf_addstr(&b, b.len ? ", " : "");
        trace_switch_print(events, &b);
    }
    printf("%d (%s): %s\n", entry->pid, comm, buf_str(&b));
    buf_release(&b);
}

/* Switches events. Returns 0, or -errno with a line. */
static int change_trace(const struct ledger_entry *entry, const char *trace, struct error *e)
{
    struct trace_switch s;
    const int bad = trace_switch_read(&s, entry, e);
    if (bad)
        return bad;
    if (!trace_switch_any(&s))
        return trace_switch_explain(entry->pid, "", e);
    const bool on = !strcmp(trace, "on");
    return on || !strcmp(trace, "off") ? trace_switch_turn(&s, entry, on, e)
                                       : trace_switch_select(&s, entry, trace, e);
}

/* Makes the changes, and says what is in force then. */
static int change_and_say(const struct ledger_entry *entry, const char *comm, const struct change *c,
                          struct error *e)
{
    struct trace_switch events;
    uint64_t word;
    int bad = c->trace ? change_trace(entry, c->trace, e) : 0;
    bad = bad ? bad : control_change(entry, c->clear, c->set, &word, e);
    if (bad)
        return bad;
    /* That a library may have events is said only if it is asked for. */
    const bool known = !trace_switch_read(&events, entry, NULL) && trace_switch_any(&events) &&
                       (events.has_agent || events.is_on || !c->only_agent);
    say(entry, comm, word, known ? &events : NULL);
    return 0;
}

/* 1: not meant; 0: done; else -errno with a line. */
static int change_one(const struct ledger_entry *entry, int pid, const struct query *where,
                      const struct change *c, struct error *e)
{
    struct ledger_header h;
    char comm[sizeof(h.comm) + 1] = "";
    if (!entry->alive || (pid && entry->pid != pid))
        return 1;
    int fd = ledger_entry_open(entry);
    int bad = fd < 0 ? error_set(e, -fd, "the ledger of process %d: %s", entry->pid, strerror(-fd))
                     : ledger_copy_header(fd, &h, e);
    if (!bad)
        memcpy(comm, h.comm, sizeof(h.comm));
    if (fd >= 0)
        close(fd);
    struct subject s = {.comm = comm, .pid = entry->pid};
    if (where && !query_match(where, look_up, &s))
        return 1;
    /* what cannot be read may have another control page, too */
    return bad ? bad : change_and_say(entry, comm, c, e);
}

static bool process_fits(void *arg, const char *comm, int pid)
{
    struct subject s = {comm, pid};
    return !arg || query_match(arg, look_up, &s);
}

static unsigned change_agents(int pid, const struct query *where, const struct change *c, int *code)
{
    struct ledger_scan scan;
    struct error e = {""};
    unsigned changed = 0;
    pid ? ledger_scan_process(&scan, pid) : ledger_scan_all(&scan);
    for (int tags = 0; tags <= !c->only_agent; tags++)
        vec_each (const struct ledger_entry, entry, tags ? &scan.tags : &scan.list) {
            int bad =
                entry->tags == tags ? change_one(entry, pid, where, c, &e) : 1; /* the agent's are in both */
            changed += bad == 0;
            if (bad < 0)
                *code = command_fail(EXIT_FAILED, "%s", e.text);
        }
    ledger_scan_release(&scan);
    return changed;
}

/* The process has a ledger, of an agent that keeps no accounts of call sites. */
static bool has_no_sites(const struct ledger_scan *scan)
{
    struct ledger_header h;
    struct error e = {""};
    const struct ledger_entry *entry = ledger_scan_latest(&scan->list);
    int fd = entry && entry->alive ? ledger_entry_open(entry) : -1;
    bool none = fd >= 0 && !ledger_copy_header(fd, &h, &e) && !h.regions[LEDGER_SITES].used;
    if (fd >= 0)
        close(fd);
    return none;
}

static int explain_no_places(int pid, const struct query *where, bool no_sites)
{
    char process[64];
    if (no_sites)
        return command_fail(EXIT_FAILED,
                            "process %d has no tags and no accounts of call sites: start it with `allium run "
                            "--sites` or `allium env --sites`, which preload liballium-agent-full.so",
                            pid);
    if (pid && !where)
        snprintf(process, sizeof(process), "process %d has no tags", pid);
    else
        snprintf(process, sizeof(process), "no running process%s has tags",
                 where ? " that fits --where" : "");
    return command_fail(EXIT_FAILED,
                        "%s that this user may change: build the program with <allium/tag.h>, see "
                        "allium-tags(1); for call sites (`allium run --sites`), only stacks can be requested",
                        process);
}

/* Why nothing was changed. */
static int explain_none(int pid, const struct query *where, const struct change *c)
{
    struct ledger_scan scan;
    struct error e = {""};
    const bool places = c->tags.only || c->tags.where;
    ledger_scan_process(&scan, pid);
    int unread = pid ? ledger_scan_unread(&scan, &e) : 0;
    const bool no_sites = pid && !where && has_no_sites(&scan);
    ledger_scan_release(&scan);
    if (unread)
        return command_fail(EXIT_FAILED, "%s", e.text);
    if (pid && kill(pid, 0) && errno == ESRCH)
        return command_fail(EXIT_FAILED, "there is no process %d", pid);
    if (places)
        return explain_no_places(pid, where, no_sites);
    if (pid)
        return command_fail(EXIT_FAILED,
                            "no running process %d%s has a ledger of this user: it was not started with the "
                            "agent, or has no sample yet (allium ps lists ledgers)",
                            pid, where ? " that fits --where" : "");
    return command_fail(EXIT_FAILED,
                        "no running process with a ledger fits --where (allium ps lists ledgers)");
}

static int change_all(int pid, struct query *where, const struct change *c)
{
    unsigned changed = 0;
    int code = EXIT_DONE;
    if (!c->tags.only && !c->tags.where)
        changed = change_agents(pid, where, c, &code);
    if (!c->agent) {
        int bad = set_rules_apply(&c->tags, pid, process_fits, where, &changed);
        code = bad ? bad : code;
    }
    return changed || code != EXIT_DONE ? code : explain_none(pid, where, c);
}

/* Of processes, or of places if it asks for what those have. -1: fine; else the exit code. */
static int parse_where(const char *text, struct query **where, struct change *c)
{
    struct error e = {""};
    if (!text || !query_parse(where, text, fields, sizeof(fields) / sizeof(*fields), &e, NULL))
        return -1;
    if (account_query_parse(&c->tags.where, text, &e))
        return command_misuse(&command_set, "%s", e.text);
    c->tags.text = text;
    if (c->agent)
        return command_misuse(
            &command_set,
            "period, free-stacks and trace apply to whole processes: use only comm and pid in --where");
    return -1;
}

static int parse_for(const char *text, struct change *c)
{
    uint64_t ns;
    if (!text)
        return -1;
    int code = option_values_parse_time(&command_set, "for", text, 1, &ns);
    if (code >= 0)
        return code;
    if (!c->tags.only && !c->tags.where)
        return command_misuse(&command_set,
                              "--for ends actions on tags and sites: use it with stacks, latency or fail, or "
                              "with class, func, file and so on in --where");
    c->tags.change.until_ns = clock_ns(CLOCK_MONOTONIC) + ns;
    return -1;
}

/* The process, if one is named; and which word is the first action. */
static int parse_pid(const struct arguments *a, const char *where, int *pid, int *first)
{
    if (a->n_rest && !a->rest[0][strspn(a->rest[0], "0123456789")]) {
        *first = 1;
        int code = source_parse_pid(&command_set, a->rest[0], pid);
        if (code >= 0)
            return code;
    } else if (!where) {
        return a->n_rest > 1 ? source_parse_pid(&command_set, a->rest[0], pid)
                             : command_misuse(&command_set, "missing PID or --where");
    }
    return -1;
}

static int run(int argc, char **argv)
{
    struct arguments a;
    struct change c = {.tags = {.actions = BUF_INIT}};
    struct query *where = NULL;
    int code = command_parse(&command_set, argc, argv, false, &a);
    if (code >= 0)
        return code;
    const char *text = command_value(&command_set, &a, "where");
    int pid = 0, first = 0;
    code = parse_pid(&a, text, &pid, &first);
    c.agent = first == a.n_rest; /* the settings are shown */
    for (int i = first; i < a.n_rest && code < 0; i++)
        code = parse_action(a.rest[i], &c);
    if (code < 0 && c.agent && c.tags.only)
        code = command_misuse(&command_set, "period and free-stacks change samples; stacks, latency and fail "
                                            "change tags and sites: use two commands");
    if (code < 0)
        code = parse_where(text, &where, &c);
    if (code < 0)
        code = parse_for(command_value(&command_set, &a, "for"), &c);
    struct sink out = sink_to_file(stdout);
    if (code < 0)
        code = command_written(&out, change_all(pid, where, &c));
    query_free(where);
    set_rules_release(&c.tags);
    return code;
}
