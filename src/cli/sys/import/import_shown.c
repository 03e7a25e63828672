/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/import/import_shown.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/option_values.h"
#include "cli/sys/import/import_trace.h"
#include "cli/sys/sys_vmlinux.h"
#include "collect/kernel/trace/packed_input.h"
#include "view/text/text.h"

#define RECORDING_MAGIC "SQLite format 3"

static const char *const about_traces[] = {"kallsyms", "state", "partial"};

/* "10s..20s", "10s..", "..20s". */
static int parse_time(struct sys_request *r, const char *text)
{
    const struct command *c = &r->as_command;
    struct sys_span *span = &r->show.span;
    const char *dots = text ? strstr(text, "..") : NULL;
    if (!text)
        return -1;
    if (!dots || !strcmp(text, ".."))
        return command_misuse(c,
                              "--time needs FROM..TO, times since the first event: 10s..20s, 10s.. or ..20s");
    *span = (struct sys_span){.given = true, .to_ns = UINT64_MAX};
    char *from = mem_strndup(text, (size_t)(dots - text));
    int code = *from ? option_values_parse_time(c, "time", from, 0, &span->from_ns) : -1;
    if (code < 0 && dots[2])
        code = option_values_parse_time(c, "time", dots + 2, 0, &span->to_ns);
    if (code < 0 && span->from_ns >= span->to_ns)
        code = command_misuse(c, "--time: %s ends before it begins", text);
    free(from);
    return code;
}

int import_shown_parse(struct sys_request *r, const struct arguments *a)
{
    const struct command *c = &r->as_command;
    if (!r->tool->reads_traces)
        return -1;
    r->kallsyms = command_value(c, a, "kallsyms");
    r->state = command_value(c, a, "state");
    r->partial = command_value(c, a, "partial") != NULL;
    for (size_t i = 0; i < sizeof(about_traces) / sizeof(*about_traces) && !r->from; i++)
        if (command_value(c, a, about_traces[i]))
            return command_misuse(c, "--%s is about traces: give one with --from", about_traces[i]);
    if (command_value(c, a, "time") && !r->from)
        return command_misuse(c, "--time needs --from: the events that are seen now have no past");
    return parse_time(r, command_value(c, a, "time"));
}

/* What cannot be read is taken for a recording: its reader says why. */
static bool is_recording(const char *path)
{
    struct stat st;
    char magic[sizeof(RECORDING_MAGIC)] = "";
    if (!strcmp(path, "-") || (!stat(path, &st) && S_ISDIR(st.st_mode)))
        return false;
    FILE *file = fopen(path, "re");
    if (!file)
        return true;
    const size_t n = fread(magic, 1, sizeof(magic), file);
    fclose(file);
    return !n || !memcmp(magic, RECORDING_MAGIC, n < sizeof(magic) ? n : sizeof(magic));
}

/* ---- the recording that is removed ---- */

static char folder[256], recording[272];

static void remove_recording(void)
{
    unlink(recording);
    rmdir(folder);
}

static void remove_and_end(int number)
{
    remove_recording();
    signal(number, SIG_DFL);
    raise(number);
}

static int make_folder(struct error *e)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    const int n = snprintf(folder, sizeof(folder), "%s/allium-XXXXXX", packed_input_folder());
    if (n >= (int)sizeof(folder) || !mkdtemp(folder))
        return error_set(e, errno, "cannot make a temporary folder %s: %s; set TMPDIR", folder,
                         strerror(errno));
    snprintf(recording, sizeof(recording), "%s/trace", folder);
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        signal(ends[i], remove_and_end);
    return 0;
}

/* A trace may lack what the tool shows. */
static int check_events(const struct sys_request *r, const struct import_trace *t)
{
    const struct kernel_capture *c = kernel_import_capture(t->import);
    const bool is_pages = !strcmp(r->tool->name, "kpages");
    if (is_pages ? c->pages != NULL : kmem_accounts_totals(c->accounts)->events != 0)
        return -1;
    return command_fail(EXIT_FAILED, "%s has no event of %s: sys %s shows what it has", r->from,
                        is_pages ? "pages (mm_page_alloc, mm_page_free)" : "objects (kmalloc, kfree ...)",
                        is_pages ? "kmem" : "kpages");
}

static void say(const struct import_trace *t)
{
    struct buf b = BUF_INIT;
    import_trace_add_lacks(t, &b);
    if (b.len)
        fprintf(stderr, "allium: %s%s\n", t->request->file, buf_str(&b));
    buf_release(&b);
}

static int show_trace(struct sys_request *r)
{
    struct error e = {""};
    struct import_trace t;
    const struct import_request q = {.file = r->from,
                                     .kallsyms = r->kallsyms,
                                     .vmlinux = r->vmlinux_file,
                                     .source = r->source_file,
                                     .state = r->state,
                                     .partial = r->partial,
                                     .span = r->show.span};
    if (!r->show.quiet)
        fprintf(stderr, "allium: reading %s\n", strcmp(r->from, "-") ? r->from : "standard input");
    int code = import_trace_read(&t, &q);
    code = code < 0 ? check_events(r, &t) : code;
    if (code < 0 && make_folder(&e))
        code = command_fail(EXIT_FAILED, "%s", e.text);
    if (code >= 0) {
        import_trace_release(&t);
        return code;
    }
    if (!r->show.quiet)
        say(&t);
    int bad = import_trace_store(&t, recording, false, &e);
    sys_vmlinux_report(&t.names.vmlinux, r->show.quiet);
    import_trace_release(&t);
    r->show.span.given = false; /* the rows are of that time */
    r->show.shown_name = r->from;
    code = bad ? command_fail(EXIT_FAILED, "%s", e.text) : sys_show_recorded(&r->show, r->tool, recording);
    remove_recording();
    return code;
}

int import_shown_run(struct sys_request *r)
{
    if (r->tool->reads_traces && !is_recording(r->from))
        return show_trace(r);
    const char *given = r->kallsyms       ? "kallsyms"
                        : r->state        ? "state"
                        : r->vmlinux_file ? "vmlinux"
                        : r->partial      ? "partial"
                        : r->source_file  ? "source"
                                          : NULL;
    if (given)
        return command_misuse(&r->as_command, "%s is a recording: leave out --%s", r->from, given);
    return sys_show_recorded(&r->show, r->tool, r->from);
}
