/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys advise`: what would make the kernel need less memory. It changes nothing. */
#include <errno.h>
#include <stdio.h>

#include "cli/option_values.h"
#include "cli/pager.h"
#include "cli/sys/advise/advise_source.h"
#include "cli/terminal.h"
#include "view/table/advice_view.h"

#define TOP_DEFAULT 20

static const struct option_doc options[] = {
    {"from", 0, "FILE", "judge the recording of allium sys record or sys import, not this machine"},
    {"config", 0, "FILE", "read the kernel's configuration from FILE (that of the kernel, if it tells it)"},
    {"source", 0, "DIR",
     "judge the options of the configuration, by the Makefiles of the kernel's source in DIR"},
    {"top", 0, "N", "print the N largest measures (20, with --json all); 0: all"},
    {"json", 0, NULL, "print JSON, see allium-json(5)"},
    {"no-pager", 0, NULL, "print long output directly, not through $PAGER"},
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "sudo allium sys advise",
    "show what would free or save memory of this machine's kernel",
    "allium sys advise --from k.allium",
    "show the same for a recording, with the calls whose objects waste most",
    "allium sys advise --from k.allium --source linux-6.12",
    "show also which options of the configuration bring how much",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_sys_advise = {
    .name = "sys advise",
    .usage = "[--from FILE] [--config FILE] [--source DIR] [--top N] [--json] [--no-pager]",
    .summary = "show what would make the kernel need less memory, and how much",
    .examples = examples,
    .options = options,
    .run = run,
};

struct request {
    const char *from, *config, *source;
    uint32_t top;
    bool json, paged;
};

static int parse(struct request *q, int argc, char **argv)
{
    const struct command *c = &command_sys_advise;
    struct arguments a;
    int code = command_parse(c, argc, argv, false, &a);
    if (code >= 0)
        return code;
    *q = (struct request){.from = command_value(c, &a, "from"),
                          .config = command_value(c, &a, "config"),
                          .source = command_value(c, &a, "source"),
                          .json = command_value(c, &a, "json") != NULL,
                          .paged = !command_value(c, &a, "no-pager")};
    q->top = q->json ? 0 : TOP_DEFAULT;
    if (a.n_rest)
        return command_misuse(c, "sys advise does not take %s: give a recording with --from", a.rest[0]);
    return option_values_parse_top(c, command_value(c, &a, "top"), &q->top);
}

static int show(const struct request *q, const struct advise_source *s)
{
    struct advice a;
    struct buf notes = BUF_INIT;
    const struct advice_figure memory = s->input.memory_bytes;
    const struct advice_view view = {.source = q->from,
                                     .release = s->release,
                                     .time_ns = s->taken_ns,
                                     .memory_bytes = memory.known ? memory.value : 0,
                                     .top = q->top,
                                     .style = terminal_style(stdout)};
    struct sink out = q->json ? sink_to_file(stdout) : pager_sink(q->paged);
    advice_find(&a, &s->input);
    if (q->json)
        advice_view_json(&out, &view, &a);
    else
        advice_view_text(&out, &view, &a, &notes);
    int code = q->json ? command_written(&out, EXIT_DONE) : pager_written(&out, EXIT_DONE);
    if (code == EXIT_DONE)
        command_notes(&notes);
    buf_release(&notes);
    advice_release(&a);
    return code;
}

static int run(int argc, char **argv)
{
    struct request q;
    struct advise_source s = {.release = NULL};
    struct error e = {""};
    int code = parse(&q, argc, argv);
    if (code >= 0)
        return code;
    int bad = q.from ? advise_source_load(&s, q.from, &e) : advise_source_read(&s, "", &e);
    if (bad)
        code = command_fail(!q.from && bad == -EACCES ? EXIT_IMPOSSIBLE : EXIT_FAILED, "%s", e.text);
    else if (advise_source_options(&s, q.config, q.source, &e))
        code = command_fail(EXIT_FAILED, "%s", e.text);
    else
        code = show(&q, &s);
    advise_source_release(&s);
    return code;
}
