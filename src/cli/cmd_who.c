/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/debuginfod.h"
#include "cli/pager.h"
#include "cli/source.h"
#include "cli/terminal.h"
#include "cli/words.h"
#include "view/who.h"

#define DIGITS_MAX 16

static const struct option_doc options[] = {
    {"size", 0, "SIZE", "of an unknown address: how likely a block of SIZE had been seen"},
    {"top", 0, "N", "so many blocks (12); 0: all"},
    {"json", 0, NULL, "as JSON, see allium-json(5)"},
    DEBUGINFOD_OPTION,
    {"no-pager", 0, NULL, "print a long screen at once, not through $PAGER"},
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium who 0x55d0c0a2b6d8",
    "the address in a crash, asked of the newest recording here",
    "allium who 4711 7f3a1c0012f0",
    "what a pointer of a running process points to",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_who = {
    .name = "who",
    .usage = "[SOURCE] ADDRESS [--size SIZE] [--top N] [--debuginfod TIME] [--json] [--no-pager]",
    .summary = "what an address is: a live block, or one freed lately, by whom and when",
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

static int refuse_address(const char *text, bool alone)
{
    struct stat st;
    if (alone && !stat(text, &st))
        return command_misuse(&command_who, "which address? %s is a file: allium who %s ADDRESS", text, text);
    return command_misuse(&command_who, "%s is no address: write it in hexadecimal, such as 0x55d0c0a2b6d8",
                          text);
}

static int answer(const struct source *s, uint64_t address, const struct who_options *o, bool json,
                  bool paged)
{
    struct who w;
    struct sink out = pager_sink(paged);
    who_find(&w, s->profile, address);
    if (json)
        who_json_write(&out, &w, s->profile, o);
    else
        who_write(&out, &w, s->profile, o);
    int code = pager_written(&out, w.holding.len ? EXIT_DONE : EXIT_FAILED);
    who_release(&w);
    return code;
}

static int run(int argc, char **argv)
{
    struct arguments a;
    struct error e = {""};
    struct source s;
    struct who_options o = {
        .size_bytes = UINT64_MAX, .top = WORDS_TOP_DEFAULT, .frames = WORDS_FRAMES_DEFAULT};
    uint64_t address = 0;
    int code = command_parse(&command_who, argc, argv, false, &a);
    if (code < 0)
        code = words_parse_top(&command_who, command_value(&command_who, &a, "top"), &o.top);
    if (code >= 0)
        return code;
    const char *size = command_value(&command_who, &a, "size");
    if (size && units_parse_size(size, &o.size_bytes))
        return command_misuse(&command_who, "--size %s is no size: write 24, 4K or 1M", size);
    if (!a.n_rest)
        return command_misuse(&command_who, "which address?");
    if (a.n_rest > 2)
        return command_misuse(&command_who, "one source and one address, not also %s", a.rest[2]);
    const char *text = a.rest[a.n_rest - 1];
    if (!parse_address(text, &address))
        return refuse_address(text, a.n_rest == 1);
    if (source_open_figures(&s, a.n_rest == 2 ? a.rest[0] : NULL, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    o.source = s.label;
    o.style = terminal_style(stdout);
    code = answer(&s, address, &o, command_value(&command_who, &a, "json") != NULL,
                  !command_value(&command_who, &a, "no-pager"));
    source_release(&s);
    return code;
}
