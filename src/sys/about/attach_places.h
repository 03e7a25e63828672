/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_ATTACH_PLACES_H
#define SYS_ATTACH_PLACES_H

/*
 * The places of the kernel that a tool's programs are attached to, in words.
 *
 * Runs in: the tool. Threads: one. Owns: nothing. Nothing is loaded, so that no privilege is needed.
 */

#include "base/buf.h"
#include "sys/tool.h"

/**
 * Appends the places that the method hooks on this kernel, each once: "mm_page_alloc, mm_page_free". If the BTF of the
 * kernel cannot be read, places that only some kernels have are among them. Returns 0, or -errno: the object of this
 * build cannot be read.
 */
int attach_places_add(struct buf *b, const struct sys_tool *tool, const struct sys_attach_method *method);

#endif
