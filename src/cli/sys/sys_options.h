/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_OPTIONS_H
#define CLI_SYS_OPTIONS_H

/*
 * The options of `allium sys NAME`: those of all tools, and the tool's own.
 *
 * Runs in: the tool. Owns: the parsed options, until sys_options_release().
 */

#include "cli/command.h"
#include "cli/sys/sys_show.h"
#include "model/profile/wrappers.h"
#include "symbol/tree/source_finder.h"
#include "symbol/vmlinux.h"

#define SYS_OPTIONS_MAX 56 /* as many as struct arguments has */

struct sys_request {
    const struct sys_tool *tool;
    struct sys_tool *sampled_tool; /* with --sample: a copy of the tool with columns for it; else NULL */
    struct command as_command;     /* the command for help and errors */
    struct option_doc options[SYS_OPTIONS_MAX];
    char name[32];
    struct sys_settings settings;
    const char *own[SYS_OPTIONS_MAX]; /* values of the tool's own options */
    struct sys_show show;
    char **command; /* after --; NULL: none */
    const char *user, *output, *html, *from;
    const char *kallsyms, *state; /* of a trace; NULL: not given */
    bool partial;                 /* show what can be read of a damaged trace */
    bool force;                   /* replace the file `output` */
    bool explain;                 /* print what the tool is, and observe nothing */
    const char *vmlinux_file;     /* NULL: search for one */
    struct vmlinux vmlinux;       /* once found */
    const char *source_file;      /* of the kernel's source; NULL: search for it */
    struct source_finder *finder; /* once found */
    struct wrappers helpers;
};

/** Returns -1 to go on, or an exit code after a line on stderr. Release it in any case. */
int sys_options_parse(struct sys_request *r, const struct sys_tool *tool, int argc, char **argv);
void sys_options_release(struct sys_request *r);

/** Returns the value of one of the tool's own options; "" if it takes none, NULL: not given. */
const char *sys_own_option(const struct sys_request *r, const char *name);

#endif
