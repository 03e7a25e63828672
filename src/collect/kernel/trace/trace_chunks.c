/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/trace_chunks.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

/* trace-cmd makes chunks of some pages; a section may have all symbols of the kernel. */
#define CHUNK_MAX (256u << 20)

int trace_packing_parse(enum trace_packing *out, const char *name)
{
    static const char *const names[] = {
        [TRACE_NOT_PACKED] = "none", [TRACE_PACKED_ZLIB] = "zlib", [TRACE_PACKED_ZSTD] = "zstd"};
    for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++)
        if (!strcmp(name, names[k])) {
            *out = (enum trace_packing)k;
            return 0;
        }
    return -ENOTSUP;
}

static int unpack(enum trace_packing packing, const struct buf *in, char *out, size_t bytes)
{
    uLongf got = bytes;
    if (packing == TRACE_PACKED_ZSTD)
        return ZSTD_decompress(out, bytes, buf_str(in), in->len) == bytes ? 0 : -EBADMSG;
    if (packing == TRACE_PACKED_ZLIB)
        return uncompress((Bytef *)out, &got, (const Bytef *)buf_str(in), in->len) == Z_OK && got == bytes
                   ? 0
                   : -EBADMSG;
    return -EBADMSG;
}

int trace_chunk_unpack(struct trace_cursor *c, enum trace_packing packing, struct buf *out)
{
    uint32_t packed, bytes;
    struct buf in = BUF_INIT;
    int bad = trace_cursor_u32(c, &packed);
    bad = bad ? bad : trace_cursor_u32(c, &bytes);
    bad = bad ? bad : bytes > CHUNK_MAX ? -EBADMSG : trace_cursor_bytes(c, packed, CHUNK_MAX, &in);
    if (!bad) {
        buf_reset(out);
        buf_reserve(out, bytes + 1);
        bad = unpack(packing, &in, out->data, bytes);
        out->len = bad ? 0 : bytes;
        out->data[out->len] = '\0';
    }
    buf_release(&in);
    return bad;
}

static int append(int fd, const struct buf *b)
{
    for (size_t n = 0; n < b->len;) {
        ssize_t done = write(fd, b->data + n, b->len - n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done ? -errno : -ENOSPC;
        n += (size_t)done;
    }
    return 0;
}

int trace_chunks_unpack(struct trace_cursor *c, enum trace_packing packing, int fd, uint64_t *at,
                        uint64_t *end)
{
    uint32_t n;
    struct buf out = BUF_INIT;
    const off_t begin = lseek(fd, 0, SEEK_END);
    int bad = begin < 0 ? -errno : trace_cursor_u32(c, &n);
    *at = *end = bad ? 0 : (uint64_t)begin;
    for (uint32_t k = 0; !bad && k < n; k++) {
        bad = trace_chunk_unpack(c, packing, &out);
        bad = bad ? bad : append(fd, &out);
        *end += bad ? 0 : out.len;
    }
    buf_release(&out);
    return bad;
}
