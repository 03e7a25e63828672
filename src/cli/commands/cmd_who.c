/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/debuginfod.h"
#include "cli/option_values.h"
#include "cli/pager.h"
#include "cli/screen_options.h"
#include "cli/source.h"
#include "cli/terminal.h"
#include "collect/ledger/ledger_scan.h"
#include "view/profile/who_view.h"

#define DIGITS_MAX     16
#define PID_DIGITS_MAX 9

static const struct option_doc options[] = {
    {"size", 0, "SIZE", "for an unknown address, print how likely a block of SIZE is sampled"},
    {"top", 0, "N", "print N blocks (20, with --json all); 0: all"},
    SCREEN_OPTIONS,
    {"json", 0, NULL, "print JSON, see allium-json(5)"},
    DEBUGINFOD_OPTION,
    {"no-pager", 0, NULL, "print long output directly, not through $PAGER"},
    SOURCE_PID_OPTION,
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium who 0x55d0c0a2b6d8",
    "identify an address from a crash in the newest recording here",
    "allium who 4711 7f3a1c0012f0",
    "identify a pointer of a running process",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_who = {
    .name = "who",
    .usage = "[SOURCE|-p PID] ADDRESS [--size SIZE] [--top N] [--debuginfod DURATION] " SCREEN_USAGE
             " [--json] [--no-pager]",
    .summary = "identify an address: a live block, or a block that was freed lately",
    .examples = examples,
    .options = options,
    .run = run,
};

/* Hexadecimal, with 0x before it or without. */
static bool parse_address(const char *text, uint64_t *address)
{
    const char *digits = !strncmp(text, "0x", 2) || !strncmp(text, "0X", 2) ? text + 2 : text;
    size_t n = strspn(digits, "0123456789abcdefABCDEF");
    if (!n || digits[n] || n > DIGITS_MAX)
        return false;
    *address = strtoull(digits, NULL, 16);
    return true;
}

static bool may_be_process(const char *text)
{
    size_t n = strlen(text);
    return n && n <= PID_DIGITS_MAX && !text[strspn(text, "0123456789")];
}

/* A process that there is, or one that has left a ledger. No heap lies where its number would be an address. */
static bool is_process(const char *text)
{
    if (!may_be_process(text))
        return false;
    pid_t pid = (pid_t)strtol(text, NULL, 10);
    if (pid > 0 && (!kill(pid, 0) || errno == EPERM))
        return true;
    struct ledger_scan scan;
    ledger_scan_process(&scan, pid);
    bool left = scan.list.len != 0;
    ledger_scan_release(&scan);
    return left;
}

/* One word: the address. */
static int parse_one(const char *text, uint64_t *address)
{
    struct stat st;
    bool is_address = parse_address(text, address);
    if (!is_address && !stat(text, &st))
        return command_misuse(&command_who, "missing address: %s is a file: use allium who %s ADDRESS", text,
                              text);
    if (!is_address)
        return command_misuse(&command_who,
                              "invalid address '%s': use hexadecimal digits, such as 0x55d0c0a2b6d8", text);
    if (is_process(text))
        return command_misuse(
            &command_who,
            "missing address: %s is a process: use allium who %s ADDRESS, or 0x%s for an address", text, text,
            text);
    return -1;
}

/* Two: the source and the address. Digits may be both: then they are what their place says. */
static int parse_two(const char *source, const char *text, uint64_t *address)
{
    struct stat st;
    uint64_t other;
    bool is_address = parse_address(text, address), is_file = !stat(text, &st);
    bool exchanged = parse_address(source, &other) && !may_be_process(source) && stat(source, &st);
    if (exchanged && (!is_address || is_file || is_process(text)))
        return command_misuse(&command_who, "wrong order: use allium who %s %s", text, source);
    if (!is_address)
        return command_misuse(&command_who,
                              "invalid address '%s': use hexadecimal digits, such as 0x55d0c0a2b6d8", text);
    return -1;
}

static int answer(const struct source *s, uint64_t address, const struct who_options *o, bool json,
                  bool paged)
{
    struct address_info w;
    struct sink out = pager_sink(paged);
    address_info_find(&w, s->profile, address);
    if (json)
        who_json_write(&out, &w, s->profile, o);
    else
        who_write(&out, &w, s->profile, o);
    int code = pager_written(&out, w.holding.len ? EXIT_DONE : EXIT_FAILED);
    address_info_release(&w);
    return code;
}

static int run(int argc, char **argv)
{
    struct arguments a;
    struct error e = {""};
    struct source s;
    struct who_options o = {
        .size_bytes = UINT64_MAX, .top = OPTION_VALUES_TOP_DEFAULT, .frames = OPTION_VALUES_FRAMES_DEFAULT};
    uint64_t address = 0;
    int code = command_parse(&command_who, argc, argv, false, &a);
    if (code < 0 && command_value(&command_who, &a, "json"))
        o.top = 0;
    if (code < 0)
        code = option_values_parse_top(&command_who, command_value(&command_who, &a, "top"), &o.top);
    if (code < 0)
        code = option_values_parse_size(&command_who, "size", command_value(&command_who, &a, "size"), 0,
                                        UINT64_MAX, &o.size_bytes);
    if (code >= 0)
        return code;
    if (!a.n_rest)
        return command_misuse(&command_who, "missing address: use allium who ADDRESS");
    if (a.n_rest > 2)
        return command_misuse(&command_who, "too many arguments: leave out %s", a.rest[2]);
    code = a.n_rest == 1 ? parse_one(a.rest[0], &address) : parse_two(a.rest[0], a.rest[1], &address);
    if (code >= 0)
        return code;
    int bad = source_open_figures(&s, a.n_rest == 2 ? a.rest[0] : NULL, &e);
    if (bad)
        return source_fail(bad, &e);
    o.source = s.label;
    o.style = terminal_style(stdout);
    code = answer(&s, address, &o, command_value(&command_who, &a, "json") != NULL,
                  !command_value(&command_who, &a, "no-pager"));
    source_release(&s);
    return code;
}
