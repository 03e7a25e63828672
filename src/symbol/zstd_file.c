/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/zstd_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "base/mem.h"

#define READ_BYTES  (64u << 10)
#define WRITE_BYTES (256u << 10)

struct unpacking {
    int from, to;
    uint64_t at, written, most;
    ZSTD_DStream *stream;
    bool is_whole; /* a frame has ended, and no other one has begun */
    uint8_t in[READ_BYTES], out[WRITE_BYTES];
};

static int write_all(struct unpacking *u, size_t n)
{
    if (n > u->most - u->written)
        return -EFBIG;
    for (size_t at = 0; at < n;) {
        const ssize_t done = write(u->to, u->out + at, n - at);
        if (done < 0)
            return -errno;
        at += (size_t)done;
    }
    u->written += n;
    return 0;
}

static int unpack(struct unpacking *u, size_t n)
{
    ZSTD_inBuffer in = {u->in, n, 0};
    int bad = 0;
    for (bool full = false; !bad && (in.pos < in.size || full);) {
        ZSTD_outBuffer out = {u->out, sizeof(u->out), 0};
        const size_t left = ZSTD_decompressStream(u->stream, &out, &in);
        if (ZSTD_isError(left))
            return -EBADMSG;
        full = out.pos == sizeof(u->out);
        u->is_whole = !left;
        bad = write_all(u, out.pos);
    }
    return bad;
}

static int unpack_all(struct unpacking *u)
{
    ssize_t n;
    int bad = 0;
    while (!bad && (n = pread(u->from, u->in, sizeof(u->in), (off_t)u->at)) != 0) {
        bad = n < 0 ? -errno : unpack(u, (size_t)n);
        u->at += n < 0 ? 0 : (uint64_t)n;
    }
    return bad || u->is_whole ? bad : -EBADMSG;
}

int zstd_file_unpack(int fd, uint64_t most)
{
    static const uint8_t magic[] = {0x28, 0xb5, 0x2f, 0xfd};
    uint8_t head[sizeof(magic)];
    if (pread(fd, head, sizeof(head), 0) != sizeof(head) || memcmp(head, magic, sizeof(head)) != 0)
        return -ENOEXEC;
    struct unpacking *u = mem_alloc(sizeof(*u));
    u->from = fd;
    u->most = most;
    u->stream = ZSTD_createDStream();
    u->to = memfd_create("allium-module", MFD_CLOEXEC);
    int bad = !u->stream ? -ENOMEM : u->to < 0 ? -errno : unpack_all(u);
    const int to = u->to;
    ZSTD_freeDStream(u->stream);
    free(u);
    if (bad && to >= 0)
        close(to);
    return bad ? bad : to;
}
