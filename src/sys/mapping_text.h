/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_MAPPING_TEXT_H
#define SYS_MAPPING_TEXT_H

/*
 * Names of what is mapped, for tools whose programs include bpf/process_mapping.bpf.h.
 *
 * Runs in: the tool.
 */

#include <stdint.h>

#include "base/buf.h"
#include "bpf/process_mapping.h"

struct sys_session;

/**
 * Appends the path of a mapping's file as /proc/PID/maps has it, "/usr/lib/libc.so.6" or "/tmp/x (deleted)"; of memory
 * without a file "[heap]", "[anonymous]" and so on. "..." before a path stands for directories that were not read;
 * " (renamed)" behind it: the file had another path before, or has several. " (replaced)" instead of " (deleted)":
 * another file has its path now. Without a path, the file's number stands there: "inode 4711 of device 8:1". Bytes that
 * do not print are written as \ooo.
 */
void mapping_text_add(const struct sys_session *s, struct buf *b, const struct process_mapping *m);
/** Appends a text of a program: bytes that do not print are written as \ooo. */
void mapping_text_add_printable(struct buf *b, const char *text);
/** Returns "heap", "anonymous" ... */
const char *mapping_text_class(uint32_t class);
/** Returns the same, but "memfd", "sysv" and "shmem" (a file in a tmpfs) apart from "shared", memory without a name. */
const char *mapping_text_kind(const struct sys_session *s, const struct process_mapping *m);

#endif
