/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_COMMON_H
#define VIEW_COMMON_H

/* Parts that several views share: a stack, a thread, a single block, the periods; for people and as JSON. */

#include "model/profile/address_info.h"
#include "model/profile/frames.h"
#include "view/formats/json.h"
#include "view/profile/profile_summary.h"
#include "view/text/text.h"

/** Appends one line for each frame: its function and its place in the source. At most `most` frames, and how
 * many more there are; 0: all. */
void common_stack(struct sink *out, const struct text_style *style, const struct profile *p,
                  const struct frames *frames, uint32_t most, unsigned indent);
/** Appends "recording_file.c:12 inlined" or "(module)"; nothing if neither is known. */
void common_add_place(struct buf *b, const struct text_style *style, const struct profile *p,
                      const struct frame *f);
/** Appends "worker 4711"; only the number for a thread without a name, "unknown" without either. */
void common_add_thread(struct buf *b, const struct text_style *style, const struct profile *p,
                       uint32_t thread);
/** Gets the frames of the stack that freed the block. Returns false, with `out` empty, if not even the caller
 * is known. */
bool common_freer(struct frames *out, const struct profile *p, const struct profile_free *f);

/** Writes the keys stack_end and stack, within an object. Without `addresses` the addresses of frames are
 * null. */
void common_stack_json(struct json *j, const struct profile *p, uint32_t stack, bool addresses);
/** Writes the key periods_bytes. */
void common_periods_json(struct json *j, const struct profile *p, const struct profile_summary *f);
/** Writes the keys of a live sample or a recent free, within an object. */
void common_block_json(struct json *j, const struct profile *p, bool live, uint32_t index);

/** Write null instead of an unknown text or value. */
static inline const char *common_known(const char *text)
{
    return *text ? text : NULL;
}
static inline void common_whole_or_null(struct json *j, const char *key, bool is_known, uint64_t value)
{
    if (is_known)
        json_whole(j, key, value);
    else
        json_null(j, key);
}

/** If `is_bound`, appends ~, the mark of figures that may be too high or too low (model/profile/figure_bounds.h). */
void common_mark(struct buf *b, bool is_bound);
/** If `step_ns` is not 0, appends a sentence: by how much the wall clock was set while a trace was recorded. */
void common_wall_step(struct buf *b, int64_t step_ns);

#endif
