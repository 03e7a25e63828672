/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/sys/about/tool_explain.h"
#include "cli/sys/about/tool_list.h"
#include "cli/sys/about/tool_name.h"
#include "cli/sys/import/import_shown.h"
#include "cli/sys/sys_columns.h"
#include "cli/sys/sys_options.h"
#include "cli/sys/sys_overview.h"
#include "cli/sys/sys_page.h"
#include "cli/sys/sys_show.h"
#include "cli/sys/sys_vmlinux.h"
#include "cli/wrapper_lists.h"
#include "query/field.h"
#include "sys/locked_memory.h"
#include "sys/privileges.h"

static const struct option_doc options[] = {
    {"list", 0, NULL, "list the tools, and the way to attach of each that works here"},
    SYS_OVERVIEW_OPTIONS,
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium sys",
    "show the memory of this machine on one screen",
    "allium sys -p 4711",
    "show the mappings of one process",
    "sudo allium sys --list",
    "show which tools work on this machine, and what they cannot show here",
    "sudo allium sys kmem --duration 10s",
    "show which code allocates from the kernel's slab allocator",
    NULL,
};

/* Subcommands with options of their own, which need neither BPF nor a session. */
static const struct command *const without_bpf[] = {&command_sys_record,    &command_sys_import,
                                                    &command_sys_frag,      &command_sys_advise,
                                                    &command_sys_allocinfo, NULL};

/* The word after "sys". */
static const char *name_after_sys(const struct command *c)
{
    return c->name + strlen("sys ");
}

static const struct command *find_without_bpf(const char *name)
{
    for (const struct command *const *r = without_bpf; *r; r++)
        if (!strcmp(name_after_sys(*r), name))
            return *r;
    return NULL;
}

static void list_tools(void)
{
    printf("\ntools, by NAME:\n");
    for (const struct sys_tool *const *t = sys_tools; *t; t++)
        printf("  %-12s %s\n", (*t)->name, (*t)->summary);
    printf("\nwithout BPF, by NAME:\n");
    for (const struct command *const *r = without_bpf; *r; r++)
        printf("  %-12s %s\n", name_after_sys(*r), (*r)->summary);
}

static int run(int argc, char **argv);

const struct command command_sys = {
    .name = "sys",
    .usage = "[NAME] [options] [-- CMD ARG...]",
    .summary = "show the memory of the machine on one screen; with NAME observe the kernel (needs root)",
    .examples = examples,
    .options = options,
    .more = list_tools,
    .run = run,
};

static int no_tool(const char *name)
{
    if (tool_name_is_of_book(name))
        return command_misuse(&command_sys, "this version of allium has no %.*s yet: allium sys --list",
                              (int)tool_name_bytes(name), name);
    struct query_field names[64];
    struct buf list = BUF_INIT;
    size_t n = 0;
    for (const struct sys_tool *const *t = sys_tools; *t; t++) {
        buf_printf(&list, "%s%s", n ? ", " : "", (*t)->name);
        names[n++] = (struct query_field){.name = (*t)->name};
    }
    for (const struct command *const *r = without_bpf; *r; r++) {
        buf_printf(&list, ", %s", name_after_sys(*r));
        names[n++] = (struct query_field){.name = name_after_sys(*r)};
    }
    size_t meant = query_field_closest(names, n, name, tool_name_bytes(name));
    int code =
        meant == QUERY_NO_FIELD
            ? command_misuse(&command_sys, "unknown tool %s of allium sys: use %s", name, buf_str(&list))
            : command_misuse(&command_sys, "unknown tool %s of allium sys; did you mean %s?", name,
                             names[meant].name);
    buf_release(&list);
    return code;
}

/* The command waits until the tool is ready. Returns 0, or -errno with a line. */
static int prepare_command(struct sys_request *r, struct workload *command, struct error *e)
{
    const int bad = workload_prepare(command, r->command, r->user, e);
    if (!bad && r->tool->observes_command) {
        r->settings.command = command->pid;
        r->settings.command_program = r->command[0];
    }
    return bad;
}

/* All options are read: runs the tool. */
static int observe(struct sys_request *r)
{
    struct error e = {""};
    struct workload command;
    struct sys_show *show = &r->show;
    show->page = r->html ? sys_page_open(r->html, r->force, r->tool, &e) : NULL;
    if (r->html && !show->page)
        return command_fail(EXIT_FAILED, "%s", e.text);
    if (r->from)
        return import_shown_run(r);
    int code = sys_vmlinux_find(r);
    if (code >= 0)
        return code;
    if (r->tool->marks_helpers) {
        wrapper_lists_read_helpers(&r->helpers);
        r->settings.helpers = &r->helpers;
    }
    if (r->command && prepare_command(r, &command, &e))
        return command_fail(EXIT_FAILED, "%s", e.text);
    int error = sys_open(&show->session, r->tool, &r->settings, &e);
    if (error) {
        if (r->command)
            workload_release(&command);
        return command_fail(error == -EINVAL  ? EXIT_USAGE
                            : error == -ESRCH ? EXIT_FAILED
                                              : EXIT_IMPOSSIBLE,
                            "%s", e.text);
    }
    code = sys_columns_check_attached(r, show->session);
    error = code < 0 && r->output ? recording_create(&show->recording, r->output, r->force, &e) : 0;
    if (!error && show->recording)
        error =
            recording_set_number(show->recording, RECORDING_STARTED, (int64_t)clock_ns(CLOCK_REALTIME), &e);
    if (error)
        code = command_fail(EXIT_FAILED, "%s", e.text);
    if (code >= 0) {
        if (r->command)
            workload_release(&command);
        sys_close(show->session);
        return code;
    }
    int unlocked = r->tool->urgent ? locked_memory_reserve(show->session) : 0;
    if (unlocked && !show->quiet)
        fprintf(stderr, "allium: memory cannot be locked (%s): output may be late when memory is short\n",
                strerror(-unlocked));
    if (!r->tool->attaches_later)
        privileges_drop(); /* what is missing from here on is missed where it is used */
    show->command = r->command ? &command : NULL;
    show->recording_name = r->output;
    show->command_name = r->command ? r->command[0] : NULL;
    show->hidden |= show->session->lacking;
    code = sys_show(show);
    if (r->command)
        workload_release(&command);
    sys_close(show->session);
    sys_vmlinux_report(&r->vmlinux, show->quiet);
    if (show->recording && recording_close(show->recording, &e))
        code = command_fail(EXIT_FAILED, "%s", e.text);
    return code;
}

static int run(int argc, char **argv)
{
    struct arguments a;
    if (argc < 2 || argv[1][0] == '-') {
        int code = command_parse(&command_sys, argc, argv, true, &a);
        if (code >= 0)
            return code;
        return command_value(&command_sys, &a, "list") ? tool_list(&command_sys, &a)
                                                       : sys_overview(&command_sys, &a);
    }
    const struct command *reader = find_without_bpf(argv[1]);
    if (reader)
        return reader->run(argc - 1, argv + 1);
    const struct sys_tool *tool = tool_name_find(argv[1]);
    if (!tool)
        return no_tool(argv[1]);
    struct sys_request r;
    tool = tool->variant ? tool->variant(argc - 1, argv + 1) : tool;
    int code = sys_options_parse(&r, tool, argc - 1, argv + 1);
    if (code < 0 && r.explain) {
        code = tool_explain(&r);
    } else if (code < 0) {
        code = observe(&r);
        code = sys_page_close(r.show.page, code);
    }
    sys_options_release(&r);
    return code;
}
