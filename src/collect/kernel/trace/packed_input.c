/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/packed_input.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"

#define RAW_BYTES (64u << 10)
#define OUT_BYTES (64u << 10)
/* zlib's number for: a header of gzip is wanted. */
#define GZIP_WINDOW (15 + 16)

enum packing { PLAIN, GZIP, ZSTD };

struct packed_input {
    int fd, copy_fd; /* copy_fd: a temporary file; -1: none */
    const char *path;
    enum packing packing;
    z_stream gzip;
    ZSTD_DStream *zstd;
    bool between; /* one compressed part has ended, and the next one has not begun */
    bool raw_end, over;
    const char *why; /* the compressed data are damaged; NULL: they are not */
    uint8_t raw[RAW_BYTES];
    size_t raw_at, raw_n;
    uint8_t out[OUT_BYTES];
    size_t out_at, out_n;
};

static int fail(const struct packed_input *p, int code, struct error *e)
{
    return error_set(e, code, "%s: %s", p->path, strerror(code));
}

/* What came before the damage is given first. */
static int damaged(struct packed_input *p, const char *why, struct error *e)
{
    if (p->out_n > p->out_at) {
        p->why = why;
        return 0;
    }
    return error_set(e, EILSEQ, "%s: the compressed data are damaged or cut (%s)", p->path, why);
}

/* Reads behind what is left, up to `wanted` bytes or the end. */
static int fill_raw(struct packed_input *p, size_t wanted, struct error *e)
{
    memmove(p->raw, p->raw + p->raw_at, p->raw_n - p->raw_at);
    p->raw_n -= p->raw_at;
    p->raw_at = 0;
    while (p->raw_n < wanted && !p->raw_end) {
        ssize_t got = read(p->fd, p->raw + p->raw_n, RAW_BYTES - p->raw_n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(p, errno, e);
        p->raw_end = !got;
        p->raw_n += (size_t)got;
    }
    return 0;
}

static int begin(struct packed_input *p, struct error *e)
{
    static const uint8_t zstd_magic[] = {0x28, 0xb5, 0x2f, 0xfd};
    int bad = fill_raw(p, 4, e);
    if (bad)
        return bad;
    if (p->raw_n >= 2 && p->raw[0] == 0x1f && p->raw[1] == 0x8b) {
        p->packing = GZIP;
        return inflateInit2(&p->gzip, GZIP_WINDOW) == Z_OK ? 0 : fail(p, ENOMEM, e);
    }
    if (p->raw_n >= 4 && !memcmp(p->raw, zstd_magic, sizeof(zstd_magic))) {
        p->packing = ZSTD;
        p->zstd = ZSTD_createDStream();
        return p->zstd ? 0 : fail(p, ENOMEM, e);
    }
    return 0;
}

int packed_input_open(struct packed_input **out, const char *path, struct error *e)
{
    int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);
    struct stat st;
    if (fd < 0)
        return error_set(e, errno, "%s: %s", path, strerror(errno));
    if (!fstat(fd, &st) && S_ISDIR(st.st_mode)) {
        close(fd);
        return error_set(e, EISDIR, "%s: is a directory", path);
    }
    return packed_input_open_fd(out, fd, path, e);
}

int packed_input_open_fd(struct packed_input **out, int fd, const char *path, struct error *e)
{
    struct packed_input *p = *out = mem_alloc(sizeof(*p));
    p->fd = fd;
    p->copy_fd = -1;
    p->path = path;
    int bad = begin(p, e);
    if (bad) {
        packed_input_close(p);
        *out = NULL;
    }
    return bad;
}

void packed_input_close(struct packed_input *p)
{
    if (!p)
        return;
    if (p->packing == GZIP)
        inflateEnd(&p->gzip);
    ZSTD_freeDStream(p->zstd);
    if (p->copy_fd >= 0)
        close(p->copy_fd);
    close(p->fd);
    free(p);
}

/* ---- unpacking ---- */

static int inflate_some(struct packed_input *p, struct error *e)
{
    p->gzip.next_in = p->raw + p->raw_at;
    p->gzip.avail_in = (uInt)(p->raw_n - p->raw_at);
    p->gzip.next_out = p->out;
    p->gzip.avail_out = OUT_BYTES;
    int done = inflate(&p->gzip, Z_NO_FLUSH);
    p->raw_at = p->raw_n - p->gzip.avail_in;
    p->out_n = OUT_BYTES - p->gzip.avail_out;
    p->between = done == Z_STREAM_END;
    if (p->between)
        inflateReset(&p->gzip); /* files may be joined */
    if (done == Z_OK || done == Z_STREAM_END || done == Z_BUF_ERROR)
        return 0;
    return damaged(p, p->gzip.msg ? p->gzip.msg : "not what gzip writes", e);
}

static int unzstd_some(struct packed_input *p, struct error *e)
{
    ZSTD_inBuffer in = {p->raw + p->raw_at, p->raw_n - p->raw_at, 0};
    ZSTD_outBuffer out = {p->out, OUT_BYTES, 0};
    size_t left = ZSTD_decompressStream(p->zstd, &out, &in);
    p->raw_at += in.pos;
    p->out_n = out.pos;
    p->between = !left;
    return ZSTD_isError(left) ? damaged(p, ZSTD_getErrorName(left), e) : 0;
}

static int copy_some(struct packed_input *p)
{
    p->out_n = p->raw_n - p->raw_at < OUT_BYTES ? p->raw_n - p->raw_at : OUT_BYTES;
    memcpy(p->out, p->raw + p->raw_at, p->out_n);
    p->raw_at += p->out_n;
    return 0;
}

/* Fills `out`, which is empty. */
static int fill(struct packed_input *p, struct error *e)
{
    p->out_at = p->out_n = 0;
    if (p->why)
        return damaged(p, p->why, e);
    while (!p->out_n && !p->over) {
        int bad = p->raw_at == p->raw_n ? fill_raw(p, 1, e) : 0;
        const bool empty = p->raw_at == p->raw_n;
        if (bad)
            return bad;
        const bool filler =
            p->packing == GZIP && p->between && !empty && p->raw[p->raw_at] != 0x1f; /* as of a tape */
        if ((empty && (p->packing == PLAIN || p->between)) || filler) {
            p->over = true;
            break;
        }
        p->between = false;
        bad = p->packing == GZIP ? inflate_some(p, e) : p->packing == ZSTD ? unzstd_some(p, e) : copy_some(p);
        if (bad)
            return bad;
        if (empty && !p->out_n)
            return damaged(p, "unexpected end of file", e);
    }
    return 0;
}

int packed_input_peek(struct packed_input *p, const uint8_t **bytes, size_t *n, struct error *e)
{
    int bad = p->out_at == p->out_n ? fill(p, e) : 0;
    *bytes = p->out + p->out_at;
    *n = bad ? 0 : p->out_n - p->out_at;
    return bad;
}

int packed_input_read(struct packed_input *p, void *to, size_t room, size_t *taken, struct error *e)
{
    const uint8_t *bytes;
    size_t n;
    int bad = packed_input_peek(p, &bytes, &n, e);
    *taken = n < room ? n : room;
    memcpy(to, bytes, *taken);
    p->out_at += *taken;
    return bad;
}

/* ---- as a file ---- */

/* Not O_TMPFILE, which overlayfs has from Linux 6.1 on only. */
static int temporary_in(const char *folder)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/allium-XXXXXX", folder) >= (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

const char *packed_input_folder(void)
{
    const char *named = getenv("TMPDIR");
    if (named && *named)
        return named;
    return access("/var/tmp", F_OK) ? "/tmp" : "/var/tmp"; /* small systems have only the former */
}

int packed_input_temporary(struct error *e)
{
    const char *folder = packed_input_folder();
    int fd = temporary_in(folder);
    return fd >= 0 ? fd
                   : error_set(e, errno, "cannot make a temporary file in %s: %s", folder, strerror(errno));
}

static int write_all(int fd, const uint8_t *bytes, size_t n, struct error *e)
{
    while (n) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return error_set(e, done ? errno : ENOSPC, "cannot unpack into a temporary file: %s",
                             strerror(done ? errno : ENOSPC));
        bytes += done;
        n -= (size_t)done;
    }
    return 0;
}

int packed_input_file(struct packed_input *p, int *fd, uint64_t *size, struct error *e)
{
    struct stat st;
    const uint8_t *bytes;
    size_t n;
    int bad = 0;
    *size = 0;
    *fd = p->fd;
    if (p->packing == PLAIN && !fstat(p->fd, &st) && S_ISREG(st.st_mode) && st.st_size &&
        lseek(p->fd, 0, SEEK_CUR) == (off_t)(p->raw_n - p->raw_at + p->out_n)) {
        *size = (uint64_t)st.st_size;
        return 0;
    }
    *fd = p->copy_fd = packed_input_temporary(e);
    if (p->copy_fd < 0)
        return p->copy_fd;
    while (!(bad = packed_input_peek(p, &bytes, &n, e)) && n) {
        bad = write_all(p->copy_fd, bytes, n, e);
        if (bad)
            break;
        *size += n;
        p->out_at = p->out_n;
    }
    return bad;
}

uint64_t packed_input_written_ns(const struct packed_input *p)
{
    struct stat st;
    if (fstat(p->fd, &st) || !S_ISREG(st.st_mode) || !st.st_size)
        return clock_ns(CLOCK_REALTIME);
    return (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
}

bool packed_input_is(const struct packed_input *p, const char *path)
{
    struct stat a, b;
    return !fstat(p->fd, &a) && !stat(path, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}
