/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_COMMON_H
#define VIEW_COMMON_H

/*
 * Pieces that several views have: a stack, a thread, a single block, the periods; for people and as JSON.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include "model/profile/address_info.h"
#include "model/profile/frames.h"
#include "view/formats/json.h"
#include "view/profile/profile_summary.h"
#include "view/text/text.h"

/** A line a frame: its function and its place in the source. At most `most` and how many more there are; 0: all. */
void piece_stack(struct sink *out, const struct text_style *style, const struct profile *p,
                 const struct frames *frames, uint32_t most, unsigned indent);
/** "recording_file.c:12 inlined" or "(module)"; nothing where neither is known. */
void piece_add_place(struct buf *b, const struct text_style *style, const struct profile *p,
                     const struct frame *f);
/** "worker 4711"; the number alone where it has no name, "unknown" where it has none either. */
void piece_add_thread(struct buf *b, const struct text_style *style, const struct profile *p,
                      uint32_t thread);
/** The frames of who freed it; false: not even the caller is known, and `out` is empty. */
bool piece_freer(struct frames *out, const struct profile *p, const struct profile_free *f);

/** The keys stack_end and stack, within an object; without `addresses` those of the frames are null. */
void piece_stack_json(struct json *j, const struct profile *p, uint32_t stack, bool addresses);
/** The key periods_bytes. */
void piece_periods_json(struct json *j, const struct profile *p, const struct profile_summary *f);
/** The keys of a live sample or a recent free, within an object. */
void piece_block_json(struct json *j, const struct profile *p, bool live, uint32_t index);

/** Null instead of a text or a value that is not known. */
static inline const char *piece_known(const char *text)
{
    return *text ? text : NULL;
}
static inline void piece_whole_or_null(struct json *j, const char *key, bool is_known, uint64_t value)
{
    if (is_known)
        json_whole(j, key, value);
    else
        json_null(j, key);
}

#endif
