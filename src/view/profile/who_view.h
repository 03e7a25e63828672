/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_WHO_VIEW_H
#define VIEW_WHO_VIEW_H

/*
 * What an address is, and which blocks were freed lately: what `allium who` and `allium frees` print.
 *
 * Runs in: the tool. Threads: pure, but for the time zone. Owns: nothing. Writes to the sink only.
 */

#include "model/profile/address_info.h"
#include "view/text/sink.h"
#include "view/text/text.h"

struct who_options {
    struct text_style style; /* not for JSON */
    const char *source;      /* what was read */
    /* unknown addresses: how likely a block of this size had been seen; UINT64_MAX: of some sizes */
    uint64_t size_bytes;
    uint32_t top;    /* blocks; 0: all; not for JSON */
    uint32_t frames; /* of each stack; 0: all; not for JSON */
};

void who_write(struct sink *out, const struct address_info *w, const struct profile *p,
               const struct who_options *o);
void who_json_write(struct sink *out, const struct address_info *w, const struct profile *p,
                    const struct who_options *o);

struct frees_options {
    struct text_style style; /* not for JSON */
    const char *source;
    const char *filter; /* in words; NULL: all are shown */
    uint32_t top;       /* rows; 0: all */
};

/** `order` are indices of the profile's frees, `n` of them, in the order in which they are shown. */
void frees_write(struct sink *out, const struct profile *p, const uint32_t *order, size_t n,
                 const struct frees_options *o);
void frees_json_write(struct sink *out, const struct profile *p, const uint32_t *order, size_t n,
                      const struct frees_options *o);

/** Sizes for which the chance of being seen is told when none is asked for; 0 at the end. */
extern const uint64_t who_sizes[];

#endif
