/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_SYS_VMLINUX_H
#define CLI_SYS_VMLINUX_H

/*
 * The file that files and lines of the kernel's source come from: the one that --vmlinux names, or one that is
 * installed, or one that debuginfod servers have.
 *
 * Runs in: the tool. Owns: r->vmlinux, until sys_vmlinux_release().
 */

#include "base/buf.h"
#include "cli/sys/sys_options.h"

/** Whether --lines and --vmlinux fit what is asked for. -1 to go on, or an exit code after a line. */
int sys_vmlinux_check(const struct sys_request *r);
/**
 * Finds it, if it is needed. -1 to go on, or an exit code after a line. Where there is none, a line says what would
 * help, and it goes on without.
 */
int sys_vmlinux_find(struct sys_request *r);
void sys_vmlinux_release(struct sys_request *r);

/** What to do where there is none, in words. */
void sys_vmlinux_add_advice(struct buf *b);

#endif
