/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_PAGE_BLOB_H
#define VIEW_PAGE_BLOB_H

/*
 * The data of a page: a header in JSON, and columns of numbers and texts behind it, which the header refers to. In the
 * page it is compressed (zlib) and in base64; web/src/blob.ts reads it.
 *
 * Before compression: the length of the header (u32), the header, zeros up to a multiple of 8, and the columns, each at
 * a multiple of 8. All numbers are little-endian. A column in the header is an object: `kind` is "u32", "f64", "text"
 * (texts, each ended by a newline), "zero" (all are 0) or "same" (the column that begins at `at`, and has
 * its kind); `at` is its offset behind the zeros and `bytes` its size, both in bytes (0 of "zero" and "same"), and `n`
 * its length in numbers or texts.
 *
 * Runs in: the tool. Threads: one at a time. Owns: the buffers, from page_blob_begin() until page_blob_write() or
 * page_blob_release().
 */

#include <stddef.h>
#include <stdint.h>

#include "view/formats/json.h"

struct page_blob {
    struct buf header, columns;
    struct sink to_header;
    struct json json;  /* the header is being written: within its outermost object */
    struct buf packed; /* after page_blob_pack() */
};

void page_blob_begin(struct page_blob *b);
/** Append a column under this key. */
void page_blob_add_u32(struct page_blob *b, const char *key, const uint32_t *values, size_t n);
/**
 * In the smallest form: "zero", "same" as the column `same` (NULL: none) that is at `same_at`, "u32", or "f64".
 * Returns the offset of the values, to be a later `same_at`; 0 of "zero".
 */
size_t page_blob_add_f64(struct page_blob *b, const char *key, const double *values, size_t n,
                         const double *same, size_t same_at);
/** Bytes that are not UTF-8 and control characters become "?". */
void page_blob_add_texts(struct page_blob *b, const char *key, char *const *texts, size_t n);

/** Compresses everything, at the first call. Returns how many bytes page_blob_write() will write. */
size_t page_blob_pack(struct page_blob *b);
/** Packs the data if that was not done, writes them in base64, and frees the buffers. */
void page_blob_write(struct page_blob *b, struct sink *out);
/** Frees the buffers. */
void page_blob_release(struct page_blob *b);

#endif
