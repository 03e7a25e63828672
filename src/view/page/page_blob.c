/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/page/page_blob.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/mem.h"
#include "view/text/text.h"

#define ALIGNMENT 8u

void page_blob_begin(struct page_blob *b)
{
    *b = (struct page_blob){.header = BUF_INIT, .columns = BUF_INIT, .packed = BUF_INIT};
    b->to_header = sink_to_buf(&b->header);
    b->json = (struct json){.out = &b->to_header, .line = true};
    json_open(&b->json, NULL, '{');
}

static void align(struct buf *b)
{
    static const char zeros[ALIGNMENT];
    buf_add(b, zeros, (ALIGNMENT - b->len % ALIGNMENT) % ALIGNMENT);
}

static void describe(struct page_blob *b, const char *key, const char *kind, size_t at, size_t bytes,
                     size_t n)
{
    json_open(&b->json, key, '{');
    json_text(&b->json, "kind", kind);
    json_whole(&b->json, "at", at);
    json_whole(&b->json, "bytes", bytes);
    json_whole(&b->json, "n", n);
    json_close(&b->json, '}');
}

/* Returns the offset of the column. */
static size_t add(struct page_blob *b, const char *key, const char *kind, const void *values, size_t bytes,
                  size_t n)
{
    align(&b->columns);
    const size_t at = b->columns.len;
    buf_add(&b->columns, values, bytes);
    describe(b, key, kind, at, bytes, n);
    return at;
}

void page_blob_add_u32(struct page_blob *b, const char *key, const uint32_t *values, size_t n)
{
    add(b, key, "u32", values, n * sizeof(*values), n);
}

static bool fits_u32(double v)
{
    return v >= 0 && v <= UINT32_MAX && v == (double)(uint32_t)v;
}

size_t page_blob_add_f64(struct page_blob *b, const char *key, const double *values, size_t n,
                         const double *same, size_t same_at)
{
    size_t small = 0, zero = 0, at = 0;
    for (size_t i = 0; i < n; i++) {
        small += fits_u32(values[i]);
        zero += values[i] >= 0 && values[i] <= 0; /* not what is unknown, NaN */
    }
    if (zero == n) {
        describe(b, key, "zero", 0, 0, n);
    } else if (same && !memcmp(values, same, n * sizeof(*values))) {
        describe(b, key, "same", at = same_at, 0, n);
    } else if (small == n) {
        uint32_t *narrow = mem_array(n, sizeof(*narrow));
        for (size_t i = 0; i < n; i++)
            narrow[i] = (uint32_t)values[i];
        at = add(b, key, "u32", narrow, n * sizeof(*narrow), n);
        free(narrow);
    } else {
        at = add(b, key, "f64", values, n * sizeof(*values), n);
    }
    return at;
}

void page_blob_add_texts(struct page_blob *b, const char *key, char *const *texts, size_t n)
{
    static const struct text_style utf8 = {.utf8 = true};
    align(&b->columns);
    const size_t at = b->columns.len;
    for (size_t i = 0; i < n; i++) {
        text_add_name(&b->columns, &utf8, texts[i]);
        buf_addch(&b->columns, '\n');
    }
    describe(b, key, "text", at, b->columns.len - at, n);
}

size_t page_blob_pack(struct page_blob *b)
{
    struct buf whole = BUF_INIT;
    if (b->packed.len)
        return (b->packed.len + 2) / 3 * 4;
    json_close(&b->json, '}');
    const uint32_t header = (uint32_t)b->header.len;
    buf_add(&whole, &header, sizeof(header));
    buf_add(&whole, b->header.data, b->header.len);
    buf_release(&b->header);
    align(&whole);
    buf_add(&whole, b->columns.data, b->columns.len);
    buf_release(&b->columns);
    uLongf packed = compressBound(whole.len);
    buf_reserve(&b->packed, packed);
    if (compress2((unsigned char *)b->packed.data, &packed, (const unsigned char *)whole.data, whole.len,
                  Z_BEST_SPEED) != Z_OK)
        packed = 0; /* not with a buffer of that size; buf_reserve() ends us if there is no memory */
    buf_release(&whole);
    b->packed.len = packed;
    return (packed + 2) / 3 * 4;
}

static void write_base64(struct sink *out, const unsigned char *at, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char text[4096];
    size_t n = 0;
    for (size_t i = 0; i < len; i += 3) {
        const size_t left = len - i;
        const uint32_t three =
            (uint32_t)at[i] << 16 | (left > 1 ? (uint32_t)at[i + 1] << 8 : 0) | (left > 2 ? at[i + 2] : 0);
        text[n++] = digits[three >> 18];
        text[n++] = digits[three >> 12 & 63];
        text[n++] = left > 1 ? digits[three >> 6 & 63] : '=';
        text[n++] = left > 2 ? digits[three & 63] : '=';
        if (n == sizeof(text) || left <= 3) {
            sink_write(out, text, n);
            n = 0;
        }
    }
}

void page_blob_write(struct page_blob *b, struct sink *out)
{
    if (!b->packed.len)
        page_blob_pack(b);
    write_base64(out, (const unsigned char *)b->packed.data, b->packed.len);
    page_blob_release(b);
}

void page_blob_release(struct page_blob *b)
{
    buf_release(&b->header);
    buf_release(&b->columns);
    buf_release(&b->packed);
}
