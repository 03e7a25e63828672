/* SPDX-License-Identifier: BSD-2-Clause */
/* `allium sys import`: a recording of a trace of the kernel's allocators that another tool has written. */
#include <stdio.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/option_values.h"
#include "cli/sys/import/import_script.h"
#include "cli/sys/import/import_moment.h"
#include "cli/sys/import/import_trace.h"
#include "cli/sys/import/sys_import_boot.h"
#include "cli/sys/kernel_store.h"
#include "cli/sys/sys_vmlinux.h"
#include "view/text/sink.h"
#include "view/text/text.h"

static const struct option_doc options[] = {
    {"output", 'o', "OUT", "write the recording to OUT"},
    {"force", 0, NULL, "replace OUT if it exists"},
    {"boot", 0, NULL, "read the running kernel's trace of its boot, see doctor --boot (needs root)"},
    {"format", 0, "NAME",
     "read FILE as text, perf.data, trace.dat, raw, allocinfo, slab_traces or page_owner, whatever it looks "
     "like"},
    {"kallsyms", 0, "FILE", "take names from FILE, a copy of the traced kernel's /proc/kallsyms"},
    {"script", 0, NULL,
     "print a script that traces another machine and packs the files to import; busybox suffices"},
    {"state", 0, "DIR",
     "read the state of the traced kernel's memory from copies of its /proc and /sys below DIR"},
    {"vmlinux", 0, "FILE",
     "take files and lines of the source from FILE, the traced kernel's, and its modules"},
    {"source", 0, "PATH",
     "take files of code without debug information from PATH, the kernel's source: a folder, or its archive"},
    {"partial", 0, NULL, "keep what was read of a file that is damaged or cut"},
    {"quiet", 0, NULL, "print only errors"},
    {NULL, 0, NULL, NULL},
};

static const char *const examples[] = {
    "allium sys import trace.txt -o boot.allium",
    "make a recording of a copy of tracefs's file `trace`",
    "allium sys import perf.data -o kmem.allium",
    "make one of what perf record -a -e 'kmem:*' has written",
    "trace-cmd report trace.dat | allium sys import - -o cmd.allium",
    "make one of what another tool prints; perf script does as well",
    "allium sys import --script >pack.sh",
    "get a script for a small machine, which packs what `allium sys import allium-pack.tar.gz` reads",
    "sudo allium sys import --boot -o boot.allium",
    "make one of all kernel allocations since the boot, if the kernel was started with what doctor --boot "
    "prints",
    "allium sys kmem --from boot.allium --by comm",
    "show what each program made the kernel allocate",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_sys_import = {
    .name = "sys import",
    .usage = "FILE|--boot|--script -o OUT [--force] [--format NAME] [--kallsyms FILE] [--vmlinux FILE] "
             "[--source PATH] [--state DIR] [--partial] [--quiet]",
    .summary = "make a recording of a kernel trace that was recorded elsewhere or by another tool",
    .examples = examples,
    .options = options,
    .run = run,
};

struct request {
    struct import_request trace;
    bool force, quiet, boot, script;
};

static int parse(struct request *q, int argc, char **argv)
{
    const struct command *c = &command_sys_import;
    struct arguments a;
    int code = command_parse(c, argc, argv, false, &a);
    if (code >= 0)
        return code;
    struct import_request *t = &q->trace;
    *q = (struct request){.force = command_value(c, &a, "force") != NULL,
                          .quiet = command_value(c, &a, "quiet") != NULL,
                          .boot = command_value(c, &a, "boot") != NULL};
    *t = (struct import_request){.file = a.n_rest ? a.rest[0] : NULL,
                                 .output = command_value(c, &a, "output"),
                                 .kallsyms = command_value(c, &a, "kallsyms"),
                                 .vmlinux = command_value(c, &a, "vmlinux"),
                                 .source = command_value(c, &a, "source"),
                                 .state = command_value(c, &a, "state"),
                                 .partial = command_value(c, &a, "partial") != NULL};
    code = option_values_parse(c, "format", command_value(c, &a, "format"), import_format_words, &t->format);
    if (code >= 0)
        return code;
    q->script = command_value(c, &a, "script") != NULL;
    if (q->script && argc != 2)
        return command_misuse(c, "--script prints a script: leave out everything else");
    if (q->script)
        return -1;
    if (q->boot && (t->file || t->kallsyms || t->state || t->partial || t->format))
        return command_misuse(c, "--boot reads the running kernel: leave out %s",
                              t->file       ? t->file
                              : t->kallsyms ? "--kallsyms"
                              : t->state    ? "--state"
                              : t->partial  ? "--partial"
                                            : "--format");
    if (!t->file && !q->boot)
        return command_misuse(c, "missing file: allium sys import FILE -o OUT; - is standard input");
    if (a.n_rest > 1)
        return command_misuse(c, "too many files: leave out %s", a.rest[1]);
    if (!t->output)
        return command_misuse(c, "missing -o OUT: the recording to write");
    return -1;
}

static void say(const struct import_trace *t)
{
    const char *output = t->request->output;
    const struct kernel_capture *c = kernel_import_capture(t->import);
    const uint64_t took_ns = kernel_import_last_ns(t->import) - kernel_import_first_ns(t->import);
    const bool is_moment = import_moment_is(t), is_owner = t->format == IMPORT_PAGE_OWNER;
    char took[UNITS_TEXT_BYTES];
    struct buf b = BUF_INIT;
    if (is_moment) {
        import_moment_add_summary(t, &b);
    } else {
        buf_printf(&b, "the kernel, %s, ", units_format_duration(took, (double)took_ns));
        kernel_store_add_summary(&b, c);
    }
    import_trace_add_lacks(t, &b);
    fprintf(stderr,
            "allium: %s\n  next       allium report %s\n             allium sys %s --from %s --by %s\n",
            buf_str(&b), output, is_owner ? "kpages" : "kmem", output,
            is_owner                          ? "order"
            : t->format == IMPORT_SLAB_TRACES ? "cache"
            : is_moment                       ? "directory"
                                              : "comm");
    buf_release(&b);
}

static int import(const struct request *q)
{
    struct error e = {""};
    struct import_trace t;
    int code = import_trace_read(&t, &q->trace);
    if (code < 0 && import_trace_store(&t, q->trace.output, q->force, &e))
        code = command_fail(EXIT_FAILED, "%s", e.text);
    if (code < 0 && !q->quiet)
        say(&t);
    if (code < 0)
        sys_vmlinux_report(&t.names.vmlinux, q->quiet);
    import_trace_release(&t);
    return code < 0 ? EXIT_DONE : code;
}

static int print_script(void)
{
    struct sink out = sink_to_file(stdout);
    sink_text(&out, import_script);
    return command_written(&out, EXIT_DONE);
}

static int run(int argc, char **argv)
{
    struct request q;
    int code = parse(&q, argc, argv);
    if (code >= 0)
        return code;
    if (q.script)
        return print_script();
    return q.boot ? sys_import_boot(&(struct sys_import_boot){.output = q.trace.output,
                                                              .vmlinux = q.trace.vmlinux,
                                                              .source = q.trace.source,
                                                              .force = q.force,
                                                              .quiet = q.quiet})
                  : import(&q);
}
