/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_VMLINUX_H
#define CLI_SYS_VMLINUX_H

/*
 * The vmlinux file for files and lines of the kernel's source: given by --vmlinux, installed, or from
 * debuginfod servers; and with it the debug files of modules.
 */

#include "base/buf.h"
#include "cli/sys/sys_options.h"

/** Checks whether --lines and --vmlinux fit the other options. Returns -1 to go on, or an exit code after a
 * line. */
int sys_vmlinux_check(const struct sys_request *r);
/**
 * Opens `file`; NULL: the one of the running kernel, if it is installed or a server has it. Then v->path stays NULL if
 * there is none. Returns -1, or an exit code after a line on stderr. vmlinux_release() in any case.
 */
int sys_vmlinux_open(struct vmlinux *v, const char *file, bool quiet);
/** Prints a line about debug files of modules that were found, but are of another build. Call it at the end. */
void sys_vmlinux_report(const struct vmlinux *v, bool quiet);
/**
 * Finds the file, if it is needed. Returns -1 to go on, or an exit code after a line. If there is none, a
 * line says what would help, and the command goes on without.
 */
int sys_vmlinux_find(struct sys_request *r);
void sys_vmlinux_release(struct sys_request *r);

/** Returns what to do if there is none, in words. */
void sys_vmlinux_add_advice(struct buf *b);

#endif
