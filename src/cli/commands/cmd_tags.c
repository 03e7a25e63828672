/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/accounts/accounts_command.h"
#include "cli/accounts/accounts_source.h"
#include "cli/accounts/call_details_show.h"
#include "collect/accounts/tag_accounts.h"

static const struct option_doc options[] = {
    ACCOUNTS_OPTIONS("sort by live (default), objects, peak, allocated, allocations or failed"),
    {"html", 0, "FILE", "also write the rows as a page for any browser to FILE"},
    {"force", 0, NULL, "replace the FILE of --html if it exists"},
    {"faults", 0, "DURATION", "count page faults in the objects for DURATION"},
    {"stacks", 0, NULL, "print the stacks of calls for which `allium set` requested them"},
    {"folded", 0, NULL, "print these stacks as folded lines, for flame graphs"},
    {"latency", 0, NULL, "print the durations of calls for which `allium set` requested them"},
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium tags 4711",
    "show the account of each site in the source of process 4711",
    "allium tags 4711 --by directory --sort allocations",
    "show which part of the program allocates most often",
    "allium tags 4711 --where 'file:src/* live>1M'",
    "show sites in some files that hold more than a mebibyte",
    "allium tags ./server --by file",
    "list the files in which a program allocates, without running it",
    "allium tags server.allium@10m server.allium",
    "show what changed since ten minutes after a recording began, and how fast",
    "allium tags 4711 --faults 10s",
    "show which sites own memory that is touched for the first time, or read back from swap",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_tags = {
    .name = "tags",
    .usage = "[SOURCE|PROGRAM|-p PID] [NEWER] [--by GROUP] [--sort ORDER] [--where QUERY] "
             "[--fail-if CONDITION]... [--top N] "
             "[--interval INTERVAL] [--count N] [--duration DURATION] [--faults DURATION] " SCREEN_USAGE
             " [--json|--allocinfo|--openmetrics] [--html FILE] [--force] [--no-pager] "
             "[--stacks|--folded|--latency]",
    .summary = "show exact accounts of the sites that allocate, of a program built with <allium/tag.h>",
    .examples = examples,
    .options = options,
    .run = run,
};

static const char *const losses[ACCOUNT_LOSSES] = {
    [ACCOUNT_LOST_PLACES] =
        "tag{s} {was|were} left out: the code is in no loaded file, or the ledger has no room for more",
    [ACCOUNT_LOST_OBJECTS] = "object{s} {is|are} charged to no tag: there was no memory to follow {it|them}",
    [ACCOUNT_LOST_FREES] =
        "object{s} {was|were} freed by code without tags, and counted as live until the address came back",
    [ACCOUNT_LOST_RECORDS] = "record{s} of the ledger {is|are} damaged",
    [ACCOUNT_FOREIGN_FREES] = "free{s} {was|were} of objects that no tag had allocated",
    [ACCOUNT_LOST_VERSIONS] =
        "tag{s} {was|were} not counted: recompile {it|them} with the installed version of <allium/tag.h>",
};

static int run(int argc, char **argv)
{
    static const struct accounts_kind kind = {.command = &command_tags,
                                              .schema = "tags",
                                              .has_page = true,
                                              .read_source = accounts_source_read,
                                              .read = tags_read,
                                              .read_binary = tags_read_binary,
                                              .find_objects = tags_find_objects,
                                              .losses = losses,
                                              .none = "no tag was used yet"};
    int code = call_details_command(&command_tags, NULL, argc, argv);
    return code < 0 ? accounts_command(&kind, argc, argv) : code;
}
