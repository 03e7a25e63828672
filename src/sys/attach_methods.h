/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_ATTACH_METHODS_H
#define SYS_ATTACH_METHODS_H

/*
 * Checks whether an attach method fits the running kernel. What BTF or a quick test can tell is checked
 * before the tool's programs are loaded.
 */

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "base/buf.h"
#include "sys/tool.h"

/** Returns whether the tracepoint's first arguments have these names, in this order. False: `why` has the
 * reason. */
bool attach_method_arguments_fit(const struct btf *btf, const char *tracepoint, const char *arguments,
                                 struct buf *why);

/** Returns the position of an argument of the tracepoint, from 0 on, by its name; -1: it has none of that name. */
int attach_method_argument(const struct btf *btf, const char *tracepoint, const char *argument);

/**
 * Returns whether this kernel can attach a program as its section says, as far as a quick test can tell. (A
 * refusal after maps were made and other programs were verified would cost as much as the method that works
 * in the end.) False: `why` has the reason.
 */
bool attach_method_program_fits(const struct btf *btf, const struct bpf_program *p, struct buf *why);

/** Returns whether the kernel's struct has a member of that name. */
bool attach_method_has_member(const struct btf *btf, const char *type, const char *member);

#endif
