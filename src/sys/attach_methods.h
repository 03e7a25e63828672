/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_ATTACH_METHODS_H
#define SYS_ATTACH_METHODS_H

/*
 * Does a rung fit the kernel that runs? What can be told from its BTF, or by a look, is told before the tool's programs
 * are loaded.
 *
 * Runs in: the tool.
 */

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "base/buf.h"
#include "sys/tool.h"

/** Whether the tracepoint's first arguments have these names, in this order. False: `why` has the reason. */
bool attach_method_arguments_fit(const struct btf *btf, const char *tracepoint, const char *arguments,
                                 struct buf *why);

/**
 * Whether this kernel lets a program be attached as its section says, as far as that can be told at once: a refusal
 * after maps were made and others were verified costs as much as the rung that is taken in the end. False: `why` has
 * the reason.
 */
bool attach_method_program_fits(const struct btf *btf, const struct bpf_program *p, struct buf *why);

/** Has the kernel's struct that member, as it is called there? */
bool attach_method_has_member(const struct btf *btf, const char *type, const char *member);

#endif
