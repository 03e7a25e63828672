/* SPDX-License-Identifier: BSD-2-Clause */
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "allium_version.h"
#include "cli/command.h"
#include "query/field.h"
#include "sys/tested_kernels.h"

/* A heading of `allium --help` and its commands. */
struct group {
    const char *heading;
    const struct command *commands[8]; /* NULL at the end */
};

static const struct group groups[] = {
    {"Record",
     {&command_run, &command_env, &command_set, &command_snapshot, &command_trace, &command_attach,
      &command_detach}},
    {"Look", {&command_ps, &command_report, &command_watch, &command_diff, &command_events}},
    {"Addresses", {&command_who, &command_frees}},
    {"Exact counts", {&command_sites, &command_tags}},
    {"Hand on", {&command_export, &command_sql}},
    {"Machine", {&command_sys, &command_doctor, &command_bench}},
};

/* Words that users of other tools type, and what to type here. */
static const struct {
    const char *word, *answer;
} other_words[] = {
    {"record", "to record a program: allium run -- CMD ARG..."},
    {"top", "to list the observed processes: allium ps"},
    {"list", "to list the observed processes: allium ps"},
    {"flamegraph", "to draw a flame graph: allium export --folded live | flamegraph.pl > live.svg"},
    {"leaks", "to see which memory grows: allium watch PID"},
    {"allocinfo", "it is now: allium sys allocinfo"},
};

#define LARGE_BYTES   (128 << 10)
#define N_GROUPS      (sizeof(groups) / sizeof(*groups))
#define N_WORDS       (sizeof(other_words) / sizeof(*other_words))
#define MOST_COMMANDS 32

static int print_overview(FILE *to, int code)
{
    struct sink out = sink_to_file(to);
    sink_printf(&out,
                "usage: allium COMMAND [options]\n\nShow which code holds memory, why it grows, and what "
                "observing it costs.\n");
    for (size_t g = 0; g < N_GROUPS; g++) {
        sink_printf(&out, "\n%s\n", groups[g].heading);
        for (const struct command *const *c = groups[g].commands; *c; c++)
            sink_printf(&out, "  %-10s %s\n", (*c)->name, (*c)->summary);
    }
    sink_printf(&out,
                "\noptions:\n"
                "  -h, --help     print this text; `allium COMMAND --help` prints the options of a command\n"
                "  -V, --version  print the version and the system that it was built for\n\n"
                "start with:\n  allium run -- PROGRAM ARGS...\n");
    return command_written(&out, code);
}

static int print_version(void)
{
    struct sink out = sink_to_file(stdout);
    printf("allium %s (x86-64, glibc)\nkernels: tested on " KERNELS_TESTED
           ", untested on others; written for " KERNELS_LEAST " and later\n",
           ALLIUM_VERSION);
    return command_written(&out, EXIT_DONE);
}

static const struct command *find_command(const char *name)
{
    for (size_t g = 0; g < N_GROUPS; g++)
        for (const struct command *const *c = groups[g].commands; *c; c++)
            if (!strcmp(name, (*c)->name))
                return *c;
    return NULL;
}

static int report_no_command(const char *name)
{
    for (size_t i = 0; i < N_WORDS; i++)
        if (!strcmp(name, other_words[i].word))
            return command_fail(EXIT_USAGE, "unknown command \"%s\"; %s", name, other_words[i].answer);
    struct query_field names[MOST_COMMANDS] = {{.name = "--help"}, {.name = "--version"}};
    bool is_option = *name == '-';
    size_t n = is_option ? 2 : 0;
    for (size_t g = 0; g < N_GROUPS && !is_option; g++)
        for (const struct command *const *c = groups[g].commands; *c; c++)
            names[n++] = (struct query_field){.name = (*c)->name};
    size_t meant = query_field_closest(names, n, name, strlen(name));
    const char *what = is_option ? "option" : "command";
    if (meant == QUERY_NO_FIELD)
        return command_fail(EXIT_USAGE, "unknown %s \"%s\" (allium --help lists all)", what, name);
    return command_fail(EXIT_USAGE, "unknown %s \"%s\"; did you mean \"%s\"? (allium --help lists all)", what,
                        name, names[meant].name);
}

/*
 * What is large goes back to the kernel when it is freed: debug files and copies of ledgers take tens of megabytes for
 * a moment, and `allium run` may stay for months. glibc keeps them, as its thresholds grow with what is freed, unless
 * they are set.
 */
static void give_back_what_is_freed(void)
{
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    mallopt(M_TRIM_THRESHOLD, LARGE_BYTES);
}

static void do_nothing(int signal)
{
    (void)signal;
}

/*
 * A file that may not grow any further (`ulimit -f`) is an error of write(), which is told, and not the end of the
 * command. A handler, because exec() takes it back: the programs that we start have what our caller gave us.
 */
static void live_with_small_files(void)
{
    struct sigaction a;
    if (sigaction(SIGXFSZ, NULL, &a) || a.sa_handler != SIG_DFL)
        return;
    a = (struct sigaction){.sa_handler = do_nothing, .sa_flags = SA_RESTART};
    sigaction(SIGXFSZ, &a, NULL);
}

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words && strcmp(word, *words))
        words++;
    return *words;
}

int main(int argc, char **argv)
{
    give_back_what_is_freed();
    live_with_small_files();
    if (argc < 2)
        return print_overview(stderr, EXIT_USAGE);
    const struct command *command = find_command(argv[1]);
    if (command)
        return command->run(argc - 1, argv + 1);
    if (!strcmp(argv[1], "help") && argc > 2) {
        command = find_command(argv[2]);
        char option[] = "--help", *words[] = {argv[2], option, NULL};
        return command ? command->run(2, words) : report_no_command(argv[2]);
    }
    if (is_one_of(argv[1], (const char *const[]){"help", "--help", "-h", NULL}))
        return print_overview(stdout, EXIT_DONE);
    if (is_one_of(argv[1], (const char *const[]){"version", "--version", "-V", NULL}))
        return print_version();
    return report_no_command(argv[1]);
}
