/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/trace/trace_clock.h"
#include "cli/option_values.h"
#include "cli/wrapper_lists.h"
#include "run/launch.h"
#include "run/record.h"

static const struct option_doc options[] = {
    {"shell", 0, NULL, "print lines for a shell or an init script (default)"},
    {"systemd", 0, NULL, "print a drop-in file for a systemd unit"},
    {"docker", 0, NULL, "print lines for a Dockerfile"},
    {"period", 0, "SIZE", "take a sample for each SIZE bytes on average (512K); 1: every allocation"},
    {"ledger-size", 0, "SIZE", "limit the ledger of each process (64M; 2G with --period 1)"},
    {"sites", 0, NULL, "also keep exact accounts of call sites, for allium sites"},
    {"wrapper", 0, "NAMES", "with --sites, charge these functions' callers, as for the lists of wrappers"},
    {"trace", 0, NULL, "also be ready to trace events, which allium trace PID then does"},
    {"flight", 0, NULL, "with --trace, keep the last events all the time, for allium snapshot PID --trace"},
    {"no-follow", 0, NULL, "do not observe programs that it starts"},
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "eval \"$(allium env)\"; service/start",
    "start a service with the agent, without allium run",
    "allium env --systemd | sudo systemctl edit --stdin redis-server",
    "the same for a systemd unit (systemd 256; before, write the file that it names)",
    "allium env --systemd --trace --flight | sudo systemctl edit --stdin redis-server",
    "let a service keep its last events, which allium snapshot PID --trace stores",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_env = {
    .name = "env",
    .usage = "[--shell|--systemd|--docker] [--period SIZE] [--ledger-size SIZE] [--sites] [--wrapper NAMES] "
             "[--trace [--flight]] [--no-follow]",
    .summary = "print the environment that profiles a service you do not start yourself",
    .examples = examples,
    .options = options,
    .run = run,
};

/* A variable that the agent reads, and its value. */
struct setting {
    const char *name;
    const char *value;
    char number[40];
};

#define SETTINGS_MAX 5
struct settings {
    const char *agent;      /* as LD_PRELOAD takes it */
    const char *agent_file; /* to be copied */
    const char *agent_name; /* its file name */
    struct setting of[SETTINGS_MAX];
    int n;
    char *wrappers;
};

/* Each character of `special` in the text comes as `instead`, in which %c is it. */
static void write_escaped(const char *text, const char *special, const char *instead)
{
    for (; *text; text++)
        printf(strchr(special, *text) ? instead : "%c", *text);
}

/* NAME=value, the value in quotes if it is no number. */
static void write_setting(const struct setting *it, char quote, const char *special, const char *instead)
{
    const bool number = strspn(it->value, "0123456789") == strlen(it->value);
    printf("%s=", it->name);
    if (!number)
        putchar(quote);
    write_escaped(it->value, special, instead);
    if (!number)
        putchar(quote);
    putchar('\n');
}

#define SHELL_QUOTE "'\\%c'" /* a quote within quotes */

static void write_shell(const struct settings *s)
{
    printf("# Programs that this shell starts from now on are observed, if they can carry the agent.\n"
           "# `allium ps` lists them.\n");
    printf("export LD_PRELOAD='");
    write_escaped(s->agent, "'", SHELL_QUOTE);
    printf("'\"${LD_PRELOAD:+:$LD_PRELOAD}\"\n");
    for (int i = 0; i < s->n; i++) {
        printf("export ");
        write_setting(&s->of[i], '\'', "'", SHELL_QUOTE);
    }
    printf("# To undo it in the same shell:\n"
           "#   export LD_PRELOAD=\"${LD_PRELOAD#*%s}\"; LD_PRELOAD=\"${LD_PRELOAD#:}\"\n"
           "#   [ -n \"$LD_PRELOAD\" ] || unset LD_PRELOAD; unset",
           s->agent_name);
    for (int i = 0; i < s->n; i++)
        printf(" %s", s->of[i].name);
    printf("\n");
}

/* In a unit's Environment= a percent sign begins a specifier; a dollar is one. */
static void write_unit_text(const char *text)
{
    for (; *text; text++)
        printf(*text == '%' ? "%%%%" : strchr("\"\\", *text) ? "\\%c" : "%c", *text);
}

static void write_systemd(const struct settings *s)
{
    printf("# /etc/systemd/system/NAME.service.d/allium.conf, with the unit's NAME; then:\n"
           "#   systemctl daemon-reload && systemctl restart NAME\n"
           "# To undo it: remove the file, and run the two commands again.\n"
           "# If the unit sets LD_PRELOAD itself (systemctl show NAME -p Environment), append that value "
           "here, after "
           "a colon.\n"
           "[Service]\nEnvironment=\"LD_PRELOAD=");
    write_unit_text(s->agent);
    printf("\"\n");
    for (int i = 0; i < s->n; i++) {
        printf("Environment=\"%s=", s->of[i].name);
        write_unit_text(s->of[i].value);
        printf("\"\n");
    }
}

static void write_docker(const struct settings *s)
{
    printf("# Append this to the Dockerfile of an image with glibc, with %s beside the Dockerfile:\n"
           "COPY %s /usr/local/lib/allium/\n"
           "ENV LD_PRELOAD=/usr/local/lib/allium/%s${LD_PRELOAD:+:$LD_PRELOAD}\n",
           s->agent_name, s->agent_name, s->agent_name);
    for (int i = 0; i < s->n; i++) {
        printf("ENV ");
        write_setting(&s->of[i], '"', "\"\\$", "\\%c");
    }
    printf(
        "# Ledgers are in the container's /dev/shm, which has 64 MiB unless --shm-size sets another size.\n"
        "# To undo it: remove these lines and build the image again.\n"
        "# The agent to copy is %s\n",
        s->agent_file);
}

static void set(struct settings *s, const char *name, uint64_t value)
{
    struct setting *it = &s->of[s->n++];
    it->name = name;
    it->value = it->number;
    snprintf(it->number, sizeof(it->number), "%" PRIu64, value);
}

/* -1: fine; else the exit code. */
static int parse(const struct arguments *a, struct settings *s)
{
    const char *period = command_value(&command_env, a, "period");
    const char *size = command_value(&command_env, a, "ledger-size");
    const char *named = command_value(&command_env, a, "wrapper");
    uint64_t bytes = RECORD_PERIOD_DEFAULT_BYTES, limit;
    if (a->n_rest)
        return command_misuse(&command_env, "too many arguments: leave out %s", a->rest[0]);
    int code = option_values_parse_size(&command_env, "period", period, 1, RECORD_PERIOD_MAX_BYTES, &bytes);
    if (code < 0)
        code = option_values_parse_size(&command_env, "ledger-size", size, 1, UINT64_MAX, &limit);
    if (code >= 0)
        return code;
    set(s, "ALLIUM_PERIOD", bytes);
    if (size)
        set(s, "ALLIUM_LEDGER_SIZE", limit);
    const bool sites = command_value(&command_env, a, "sites"),
               trace = command_value(&command_env, a, "trace"),
               flight = command_value(&command_env, a, "flight");
    if (flight && !trace)
        return command_misuse(&command_env, "--flight needs --trace: use --trace --flight");
    if (sites && trace)
        return command_misuse(&command_env, "--sites and --trace exclude each other: use one");
    if (sites || trace)
        set(s, "ALLIUM_SITES",
            sites    ? LAUNCH_SITES
            : flight ? LAUNCH_TRACE | LAUNCH_FLIGHT
                     : LAUNCH_TRACE_LATER);
    if (trace && trace_clock_must_be_mono()) {
        struct setting *it = &s->of[s->n - 1];
        strncat(it->number, ",clock=mono", sizeof(it->number) - strlen(it->number) - 1);
    }
    if (!sites && named)
        return command_misuse(&command_env, "--wrapper needs --sites: use --sites --wrapper %s", named);
    if (command_value(&command_env, a, "sites") && (s->wrappers = wrapper_lists_for_agent(named)))
        s->of[s->n++] = (struct setting){.name = "ALLIUM_WRAPPERS", .value = s->wrappers};
    if (command_value(&command_env, a, "no-follow"))
        set(s, "ALLIUM_FOLLOW", 0);
    return -1;
}

static int run(int argc, char **argv)
{
    struct arguments a;
    struct settings s = {0};
    struct error e = {""};
    char *agent = NULL, *agent_file = NULL;
    int code = command_parse(&command_env, argc, argv, false, &a);
    if (code < 0)
        code = parse(&a, &s);
    if (code >= 0)
        return code;
    bool systemd = command_value(&command_env, &a, "systemd"),
         docker = command_value(&command_env, &a, "docker");
    if (systemd + docker + (command_value(&command_env, &a, "shell") != NULL) > 1)
        return command_misuse(&command_env, "too many forms: use one of --shell, --systemd and --docker");
    enum launch_agent which =
        command_value(&command_env, &a, "sites") || command_value(&command_env, &a, "trace")
            ? LAUNCH_AGENT_FULL
            : LAUNCH_AGENT_DEFAULT;
    if (launch_find_agent_file(which, &agent_file, &e) || launch_find_agent(which, &agent, &e)) {
        free(agent_file);
        return command_fail(EXIT_FAILED, "%s", e.text);
    }
    s.agent = agent;
    s.agent_file = agent_file;
    s.agent_name = strrchr(agent_file, '/') + 1;
    (systemd ? write_systemd : docker ? write_docker : write_shell)(&s);
    free(agent);
    free(agent_file);
    free(s.wrappers);
    struct sink out = sink_to_file(stdout);
    return command_written(&out, EXIT_DONE);
}
