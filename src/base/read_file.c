/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* For some files of /proc, one read(2) fills the whole buffer; for others, it returns at most a page. */
#define ROOM_BYTES (16u << 10)

int file_read_open(int fd, size_t max, struct buf *out)
{
    buf_reserve(out, 0);
    out->data[out->len] = '\0';
    size_t begin = out->len;
    for (;;) {
        if (out->cap - out->len <= ROOM_BYTES)
            buf_reserve(out, 2 * ROOM_BYTES);
        ssize_t n = read(fd, out->data + out->len, out->cap - out->len - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n > 0)
            out->len += (size_t)n;
        if (out->len - begin > max)
            out->len = begin + max;
        else if (n > 0)
            continue;
        out->data[out->len] = '\0';
        return n < 0 ? -errno : n > 0 ? -EFBIG : 0;
    }
}

static int read_path(int folder, const char *path, int flags, size_t max, struct buf *out)
{
    buf_reserve(out, 0);
    out->data[out->len] = '\0';
    int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | flags);
    if (fd < 0)
        return -errno;
    int bad = file_read_open(fd, max, out);
    close(fd);
    return bad;
}

int file_read_at(int folder, const char *path, size_t max, struct buf *out)
{
    return read_path(folder, path, O_NONBLOCK, max, out);
}

int file_read(const char *path, size_t max, struct buf *out)
{
    return read_path(AT_FDCWD, path, 0, max, out);
}
