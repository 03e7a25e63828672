/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_WHO_VIEW_H
#define VIEW_WHO_VIEW_H

/* What an address is, and which blocks were freed recently: the output of `allium who` and `allium frees`. */

#include "model/profile/address_info.h"
#include "view/text/sink.h"
#include "view/text/text.h"

struct who_options {
    struct text_style style; /* not for JSON */
    const char *source;      /* the source */
    /* for unknown addresses: the size for which to show the chance of being sampled; UINT64_MAX: several
     * sizes */
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
    const char *filter; /* the filter in words; NULL: none */
    uint32_t top;       /* rows; 0: all */
};

/** `order` has the indices of `n` frees of the profile, in the order in which they are shown. */
void frees_write(struct sink *out, const struct profile *p, const uint32_t *order, size_t n,
                 const struct frees_options *o);
void frees_json_write(struct sink *out, const struct profile *p, const uint32_t *order, size_t n,
                      const struct frees_options *o);

/** The sizes for which the chance of being sampled is shown by default; 0 at the end. */
extern const uint64_t who_sizes[];

#endif
