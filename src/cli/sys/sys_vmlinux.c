/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/sys_vmlinux.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "cli/debuginfod.h"
#include "cli/sys/sys_columns.h"
#include "cli/sys/sys_source.h"
#include "symbol/kernel_modules.h"

static bool resolver_kernel_code(const struct sys_request *r)
{
    const struct sys_part *part = r->settings.part;
    bool stacks = r->settings.config.stacks & SYS_STACK_KERNEL;
    return part ? part->kernel_code || (stacks && sys_columns_part_has_stacks(r->tool, part)) : stacks;
}

int sys_vmlinux_check(const struct sys_request *r)
{
    const struct sys_part *part = r->settings.part;
    bool source = part && part->source;
    if (r->from) /* all rows of a trace have functions, files and lines */
        return -1;
    if (r->settings.lines && source)
        return command_misuse(&r->as_command, "--lines: rows by %s have no lines, use --by site", part->name);
    if (r->settings.lines && part && !resolver_kernel_code(r))
        return command_misuse(&r->as_command, "--lines: rows by %s name no code of the kernel", part->name);
    if (r->settings.lines && !resolver_kernel_code(r))
        return command_misuse(&r->as_command, "--lines needs kernel stacks: use --stacks kernel or both");
    if (r->vmlinux_file && !r->settings.lines && !source)
        return command_misuse(&r->as_command, "--vmlinux needs --lines%s",
                              r->tool->parts ? ", or rows by file or directory" : "");
    if (r->source_file && !r->from && !r->settings.lines && !source)
        return command_misuse(&r->as_command, "--source needs --lines%s",
                              r->tool->parts ? ", or rows by file or directory" : "");
    return -1;
}

void sys_vmlinux_add_advice(struct buf *b)
{
    struct utsname name;
    uname(&name);
    buf_printf(b,
               "install the kernel's debug information (on Debian linux-image-%s-dbg), set DEBUGINFOD_URLS, "
               "or name the file with --vmlinux, or the kernel's source with --source",
               name.release);
}

/* 0: it has come, and is taken. */
static int fetch(struct vmlinux *v)
{
    unsigned char id[SYMBOL_BUILD_ID_MAX];
    size_t len = vmlinux_kernel_build_id("", id);
    struct symbol_servers *servers = len ? debuginfod_servers() : NULL;
    if (!servers)
        return -ENOENT;
    symbol_servers_want(servers, id, len);
    symbol_servers_wait(servers);
    const char *path = symbol_servers_file(servers, id, len);
    int bad = path ? vmlinux_open(v, "", path, NULL) : -ENOENT;
    v->sent = true;
    return bad;
}

static int take_named(struct vmlinux *v, const char *file, bool quiet)
{
    struct error e = {""};
    if (vmlinux_open(v, "", file, &e))
        return command_fail(EXIT_USAGE, "--vmlinux: %s", e.text);
    if (v->unchecked && !quiet)
        command_fail(0, "%s may be of another kernel: %s no build id to compare", file,
                     v->build_id_len ? "the kernel reports" : "it has");
    return -1;
}

int sys_vmlinux_open(struct vmlinux *v, const char *file, bool quiet)
{
    int code = -1;
    if (file)
        code = take_named(v, file, quiet);
    else
        vmlinux_seek(v, "");
    if (!file && !v->path && fetch(v) && !quiet)
        debuginfod_report();
    if (v->path)
        kernel_modules_use_servers(v->modules, debuginfod_servers());
    return code;
}

void sys_vmlinux_report(const struct vmlinux *v, bool quiet)
{
    struct buf refused = BUF_INIT;
    if (v->path)
        kernel_modules_add_refused(v->modules, &refused);
    if (refused.len && !quiet)
        command_fail(0, "debug information is not used: %s", buf_str(&refused));
    buf_release(&refused);
}

int sys_vmlinux_find(struct sys_request *r)
{
    struct buf advice = BUF_INIT;
    if (!r->settings.lines && !(r->settings.part && r->settings.part->source))
        return -1;
    int code = sys_vmlinux_open(&r->vmlinux, r->vmlinux_file, r->show.quiet);
    if (code < 0)
        code = sys_source_of_running(&r->finder, r->source_file, r->vmlinux.path, r->show.quiet);
    if (code < 0 && !r->vmlinux.path && !r->finder && !r->show.quiet) {
        sys_vmlinux_add_advice(&advice);
        command_fail(0, "the files of the kernel's source are not known: %s", buf_str(&advice));
    }
    if (r->vmlinux.path)
        r->settings.vmlinux = &r->vmlinux;
    r->settings.finder = r->finder;
    buf_release(&advice);
    return code;
}

void sys_vmlinux_release(struct sys_request *r)
{
    vmlinux_release(&r->vmlinux);
    source_finder_free(r->finder);
}
