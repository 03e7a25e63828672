/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/about/tool_explain.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/units.h"
#include "cli/terminal.h"
#include "sys/about/attach_places.h"
#include "sys/privileges.h"
#include "view/text/text.h"

#define INDENT 14

struct explain {
    const struct sys_tool *tool;
    const struct sys_attach_method *method; /* that works here; NULL: none, or not known */
    struct sys_session *session;            /* NULL: likewise */
    const char *requested;                  /* by --attach; NULL: the best */
    struct buf unknown;                     /* why it is not known; empty: it is */
    struct error error;                     /* why none works */
    struct sink out;
    struct text_style style;
};

int tool_explain_parse(struct sys_request *r, const struct arguments *a)
{
    const char *selects = sys_tool_option(r->tool->name);
    for (const struct option_doc *o = r->options; o->name; o++)
        if (command_value(&r->as_command, a, o->name) && strcmp(o->name, "explain") &&
            strcmp(o->name, "attach") && !(selects && !strcmp(o->name, selects)))
            return command_misuse(&r->as_command, "--explain observes nothing: leave out --%s", o->name);
    if (r->command)
        return command_misuse(&r->as_command, "--explain observes nothing: leave out -- CMD");
    r->settings.method = command_value(&r->as_command, a, "attach");
    r->explain = true;
    return -1;
}

static void write(struct explain *x, const char *label, const struct buf *words)
{
    text_paragraph(&x->out, &x->style, label, INDENT, buf_str(words));
}

/* Adds the tool's name, also for a variant of it. */
static void add_name(struct buf *b, const struct sys_tool *tool)
{
    buf_add(b, tool->name, strcspn(tool->name, "_"));
}

static void write_questions(struct explain *x)
{
    const char *label = "answers";
    for (const char *const *q = x->tool->explanation->questions; *q; q++) {
        struct buf words = BUF_INIT;
        buf_addstr(&words, *q);
        write(x, label, &words);
        buf_release(&words);
        label = "";
    }
}

/* One name may stand for several methods, each for some kernels. */
static bool is_first_of_name(const struct sys_tool *tool, const struct sys_attach_method *m)
{
    return m == tool->methods || strcmp(m[-1].name, m->name) != 0;
}

static void add_names(struct buf *b, const struct sys_tool *tool, const char *without)
{
    const size_t from = b->len;
    for (const struct sys_attach_method *m = tool->methods; m->name; m++)
        if (is_first_of_name(tool, m) && (!without || strcmp(m->name, without) != 0))
            buf_printf(b, "%s%s", b->len > from ? ", " : "", m->name);
}

/* The method that works here; without one, the requested one, or the one that shows most. */
static const struct sys_attach_method *told_method(const struct explain *x)
{
    const struct sys_attach_method *m = x->tool->methods;
    while (x->requested && m->name && strcmp(m->name, x->requested) != 0)
        m++;
    return x->method ? x->method : m->name ? m : x->tool->methods;
}

static void write_hooks(struct explain *x)
{
    struct buf words = BUF_INIT, others = BUF_INIT;
    const struct sys_attach_method *m = told_method(x);
    add_names(&others, x->tool, m->name);
    buf_printf(&words, "%s: ", m->name);
    int error = attach_places_add(&words, x->tool, m);
    if (error)
        buf_printf(&words, "not known: %s", strerror(-error));
    buf_printf(&words, ". %s is the method that %s", m->name,
               x->requested ? "is requested"
               : x->method  ? "is used here"
                            : "shows most");
    buf_printf(&words, "%s%s", others.len ? "; others: " : "; there is no other", buf_str(&others));
    write(x, "hooks", &words);
    buf_release(&words);
    buf_release(&others);
}

static void write_cost(struct explain *x)
{
    const struct sys_explanation *about = x->tool->explanation;
    char text[UNITS_TEXT_BYTES];
    struct buf words = BUF_INIT;
    if (about->event_ns)
        buf_printf(&words, "%s for %s (%s)", units_format_duration(text, about->event_ns), about->event,
                   about->measured);
    else
        buf_printf(&words, "nothing that can be measured: %s is too rare", about->event);
    write(x, "costs", &words);
    buf_release(&words);
}

/* "perf: permission denied", of each method that shows more than the one that works. */
static void write_refused(struct explain *x)
{
    const char *label = "does not work";
    vec_each (const struct sys_refusal, r, &x->session->refused) {
        struct buf words = BUF_INIT;
        buf_printf(&words, "%s: %s", r->method->name, r->why);
        write(x, label, &words);
        buf_release(&words);
        label = "";
    }
}

static void write_limits(struct explain *x)
{
    struct buf words = BUF_INIT;
    const char *unseen = x->tool->explanation->unseen;
    if (x->unknown.len)
        buf_addstr(&words, buf_str(&x->unknown));
    else if (!x->session)
        buf_addstr(&words, x->error.text);
    else if (x->session->lacks.len)
        buf_printf(&words, "by %s: %s", x->method->name, buf_str(&x->session->lacks));
    if (unseen)
        buf_printf(&words, "%s%s%s", words.len ? "; " : "", words.len ? "by any method: " : "", unseen);
    if (!words.len)
        buf_addstr(&words, "nothing is known to be missing");
    write(x, "cannot show", &words);
    buf_release(&words);
    if (x->session)
        write_refused(x);
}

static void write_more(struct explain *x)
{
    struct buf words = BUF_INIT, name = BUF_INIT;
    add_name(&name, x->tool);
    buf_addstr(&words, "allium ");
    sys_tool_add_words(&words, x->tool->name, strlen(x->tool->name));
    buf_addstr(&words, " --help; allium-sys(1), SYS ");
    for (const char *p = buf_str(&name); *p; p++)
        buf_addch(&words, (char)toupper((unsigned char)*p));
    write(x, "see also", &words);
    buf_release(&name);
    buf_release(&words);
}

/* Finds the method that works here. Returns -1, or an exit code after a line on stderr. */
static int attach(struct explain *x, const struct sys_request *r)
{
    struct buf missing = BUF_INIT;
    int error = 0;
    privileges_missing(&missing);
    if (missing.len)
        buf_printf(&x->unknown, "what is missing here is not known without %s: run it as root (sudo)",
                   buf_str(&missing));
    else
        error = sys_open(&x->session, x->tool, &r->settings, &x->error);
    buf_release(&missing);
    if (error == -EINVAL)
        return command_fail(EXIT_USAGE, "%s", x->error.text);
    x->method = x->session ? x->session->method : NULL;
    return -1;
}

int tool_explain(const struct sys_request *r)
{
    struct explain x = {.tool = r->tool,
                        .requested = r->settings.method,
                        .unknown = BUF_INIT,
                        .style = terminal_style(stdout)};
    int code = attach(&x, r);
    if (code >= 0)
        return code;
    struct buf name = BUF_INIT, summary = BUF_INIT;
    x.out = sink_to_file(stdout);
    add_name(&name, r->tool);
    buf_addstr(&summary, r->tool->summary);
    write(&x, buf_str(&name), &summary);
    write_questions(&x);
    write_hooks(&x);
    write_cost(&x);
    write_limits(&x);
    write_more(&x);
    buf_release(&summary);
    buf_release(&name);
    buf_release(&x.unknown);
    sys_close(x.session);
    return command_written(&x.out, EXIT_DONE);
}
