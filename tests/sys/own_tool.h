/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_SYS_OWN_TOOL_H
#define TESTS_SYS_OWN_TOOL_H

/*
 * Tools of the tests' own: their programs, opened on one process.
 *
 * Runs in: tests, as root.
 */

#include <sys/types.h>

#include "sys/session.h"

/** What a `struct sys_tool` takes for its programs; filled by own_tool_load(). */
extern unsigned char own_tool_object[1 << 20];
extern size_t own_tool_object_bytes;

/** Reads an object file, and packs it as the tools' are. */
void own_tool_load(const char *path);

/** The tool, of one process's events alone. */
struct sys_session *own_tool_open(const struct sys_tool *tool, pid_t pid, struct sys_settings settings);

#endif
