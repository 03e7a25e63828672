/* SPDX-License-Identifier: BSD-2-Clause */
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "allium_version.h"
#include "cli/command.h"
#include "query/field.h"
#include "sys/tested_kernels.h"

static const struct command *const commands[] = {
    &command_run,  &command_env, &command_ps,    &command_snapshot, &command_report, &command_watch,
    &command_diff, &command_who, &command_frees, &command_sites,    &command_tags,   &command_export,
    &command_sql,  &command_set, &command_sys,   &command_doctor,
};

#define LARGE_BYTES (128 << 10)
#define N_COMMANDS  (sizeof(commands) / sizeof(*commands))

static int print_overview(int code)
{
    struct sink out = sink_to_file(stdout);
    printf("usage: allium COMMAND [options]\n\nShow which code holds memory, why it grows, and what "
           "observing it costs.\n\ncommands:\n");
    for (size_t i = 0; i < N_COMMANDS; i++)
        printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
    printf("\noptions:\n  -h, --help     print this text; `allium COMMAND --help` prints the options of a "
           "command\n"
           "  --version      print the version and the system that it was built for\n\nstart with:\n  allium "
           "run -- PROGRAM "
           "ARGS...\n");
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
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (!strcmp(name, commands[i]->name))
            return commands[i];
    return NULL;
}

static int report_no_command(const char *name)
{
    if (!strcmp(name, "allocinfo"))
        return command_fail(EXIT_USAGE, "the command allocinfo is now: allium sys allocinfo");
    struct query_field names[N_COMMANDS];
    for (size_t i = 0; i < N_COMMANDS; i++)
        names[i] = (struct query_field){.name = commands[i]->name};
    size_t meant = query_field_closest(names, N_COMMANDS, name, strlen(name));
    if (meant == QUERY_NO_FIELD)
        return command_fail(EXIT_USAGE, "unknown command \"%s\" (allium --help lists all)", name);
    return command_fail(EXIT_USAGE, "unknown command \"%s\"; did you mean \"%s\"? (allium --help lists them)",
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

int main(int argc, char **argv)
{
    give_back_what_is_freed();
    if (argc < 2)
        return print_overview(EXIT_USAGE);
    const struct command *command = find_command(argv[1]);
    if (command)
        return command->run(argc - 1, argv + 1);
    bool help = !strcmp(argv[1], "help");
    if (help && argc > 2) {
        command = find_command(argv[2]);
        char option[] = "--help", *words[] = {argv[2], option, NULL};
        return command ? command->run(2, words) : report_no_command(argv[2]);
    }
    if (help || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
        return print_overview(EXIT_DONE);
    if (!strcmp(argv[1], "--version"))
        return print_version();
    return report_no_command(argv[1]);
}
