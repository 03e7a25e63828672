/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_FRAMES_H
#define MODEL_FRAMES_H

/*
 * The frames of a stack as people see them: inlined calls one by one, the agent's own left out, the end named.
 *
 * Runs in: the tool. Threads: pure functions of a profile, which must be valid. Owns: nothing.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "model/profile/profile.h"

#define FRAME_NAME_BYTES 320 /* a name made up for code without one */

/** A frame as people see it: one function, at most one line of source. */
struct frame {
    uint32_t location;          /* PROFILE_NONE: no code, but where the stack ends: "[cut]" */
    uint32_t line;              /* in the profile's `lines`; PROFILE_NONE: not named */
    enum profile_stack_end end; /* of such a marker; WHOLE: there was no frame at all */
};
struct frames VEC(struct frame);

/**
 * Replaces the content of `out` by the stack's frames, leaf first, inlined functions before those they are inlined
 * into. The agent's frames at the leaf are left out. At least one: a stack that did not end whole has a marker at its
 * root.
 */
void frames_of(struct frames *out, const struct profile *p, uint32_t stack);
/** The same for one place in the code: all that is known of a stack of which only the caller was kept. */
void frames_at(struct frames *out, const struct profile *p, uint32_t location);
/**
 * Whose doing it is: the innermost frame outside libc, libstdc++, allocator libraries and the agent, inlined functions
 * aside, wrappers passed over; where there is none, the innermost one behind these. Of `frames`, which frames_of() or
 * frames_at() has filled.
 */
const struct frame *frames_owner(const struct profile *p, const struct frames *frames);
/**
 * How many frames are passed over when it is asked who allocated: the innermost ones, as far as they are wrappers
 * (wrappers.h), and, of functions without a name, those that a wrapper of the same module called. Less than all: where
 * there is nothing else, the outermost wrapper stays. None where no wrapper is marked.
 */
size_t frames_passed_over(const struct profile *p, const struct frames *frames);
/** The first one behind those. */
const struct frame *frames_asker(const struct profile *p, const struct frames *frames);
/** "main", "libfoo.so+0x1234", "[JIT or unknown code]", "[cut]". Of the profile, or in `scratch`. */
const char *frame_function(const struct profile *p, const struct frame *f,
                           char scratch[static FRAME_NAME_BYTES]);
/**
 * For each location of the profile, the number of the first one that is the same code (module's path and build id,
 * address), also in another process. A new array, which the caller frees.
 */
uint32_t *frames_same_locations(const struct profile *p);

/** What follows the last slash. */
static inline const char *frame_basename(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/**
 * Paths of a frame's source and module, "" unknown; its line, 0 unknown; whether it is part of the next frame's code.
 */
static inline const char *frame_file(const struct profile *p, const struct frame *f)
{
    return f->line == PROFILE_NONE ? "" : profile_text(p, p->lines.at[f->line].file);
}
static inline const char *frame_module(const struct profile *p, const struct frame *f)
{
    uint32_t module = f->location == PROFILE_NONE ? PROFILE_NONE : p->locations.at[f->location].module;
    return module == PROFILE_NONE ? "" : profile_text(p, p->modules.at[module].path);
}
static inline uint32_t frame_line(const struct profile *p, const struct frame *f)
{
    return f->line == PROFILE_NONE ? 0 : p->lines.at[f->line].line;
}
static inline bool frame_inlined(const struct profile *p, const struct frame *f)
{
    return f->line != PROFILE_NONE && p->lines.at[f->line].inlined;
}

#endif
