/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_CAPTURE_CODE_H
#define SYS_CAPTURE_CODE_H

/*
 * The code of a kernel capture as locations of a profile that is being made: each call once, with its functions, files
 * and module.
 *
 * Runs in: the tool. Threads: one. Owns: what it knows by content, until capture_code_release(); the profile and the
 * names belong to the caller.
 */

#include "base/hash_map.h"
#include "model/profile/profile.h"
#include "sys/record/kernel_capture.h"

struct capture_code {
    const struct kernel_code_names *names;
    struct profile *p;
    struct map modules, locations, texts;
};

/** Returns the profile's location of a call. */
uint32_t capture_code_location(struct capture_code *c, uint64_t call);
/** Returns the location of a text that stands for a function of the kernel: "[GFP_KERNEL]". */
uint32_t capture_code_text(struct capture_code *c, const char *text);
void capture_code_release(struct capture_code *c);

#endif
