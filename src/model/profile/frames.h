/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_FRAMES_H
#define MODEL_FRAMES_H

/*
 * The frames of a stack as people read them: inlined calls are frames of their own, the agent's frames are
 * left out, and an incomplete end is shown.
 *
 * Runs in: the tool. Threads: pure functions of a profile, which must be valid. Owns: nothing.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "model/profile/profile.h"

#define FRAME_NAME_BYTES 320 /* of a name made up for code without one */

/** A frame as people read it: one function, and at most one source line. */
struct frame {
    uint32_t location;          /* PROFILE_NONE: not code but a marker of the stack's end, "[cut]" */
    uint32_t line;              /* index in the profile's `lines`; PROFILE_NONE: no name */
    enum profile_stack_end end; /* of such a marker; WHOLE: the stack had no frame at all */
};
struct frames VEC(struct frame);

/**
 * Replaces the contents of `out` by the stack's frames, leaf first, inlined functions before the functions
 * that contain them. The agent's frames at the leaf are left out. There is at least one frame: a stack that
 * is not whole gets a marker at its root.
 */
void frames_of(struct frames *out, const struct profile *p, uint32_t stack);
/** Like frames_of() for a single location, for a stack of which only the caller is known. */
void frames_at(struct frames *out, const struct profile *p, uint32_t location);
/**
 * Returns the frame that is responsible for the allocation: the innermost frame, not in a wrapper, outside libc,
 * libstdc++, allocator libraries and the agent, and not inlined from a header. If there is none, returns the
 * innermost frame behind these. `frames` was filled by frames_of() or frames_at().
 */
const struct frame *frames_owner(const struct profile *p, const struct frames *frames);
/**
 * Returns how many innermost frames to skip to reach the code that requested the memory: wrappers
 * (wrappers.h), and functions without a name that a wrapper of the same module called. It is less than the
 * number of frames: if all are wrappers, the outermost one is not skipped. 0 if no wrapper is marked.
 */
size_t frames_passed_over(const struct profile *p, const struct frames *frames);
/** Returns the first frame behind the skipped ones. */
const struct frame *frames_asker(const struct profile *p, const struct frames *frames);
/** Returns the frame whose source file requests the memory: as frames_asker(), behind inlined functions of headers. */
const struct frame *frames_site(const struct profile *p, const struct frames *frames);
/** Returns "main", "libfoo.so+0x1234", "[JIT or unknown code]" or "[cut]". The text belongs to the profile or
 * lies in `scratch`. */
const char *frame_function(const struct profile *p, const struct frame *f,
                           char scratch[static FRAME_NAME_BYTES]);
/**
 * Returns, for each location of the profile, the number of the first location with the same code (path and
 * build id of the module, and address), in any process. A new array, which the caller frees.
 */
uint32_t *frames_same_locations(const struct profile *p);

/** Returns the part of the path behind the last slash. */
static inline const char *frame_basename(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/**
 * The paths of a frame's source and module ("": unknown), its line (0: unknown), and whether it is inlined
 * into the next frame.
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
