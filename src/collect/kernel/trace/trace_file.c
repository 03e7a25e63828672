/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"

#define READ_BYTES (16u << 10) /* of damaged data, what one read gives is lost */

struct trace_file {
    gzFile file;
    int fd; /* closed with `file` */
    const char *path;
    char *bytes; /* READ_BYTES behind what is left of a line */
    size_t begin, end;
    bool over;
};

int trace_file_open(struct trace_file **out, const char *path, struct error *e)
{
    int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);
    struct stat st;
    if (fd >= 0 && !fstat(fd, &st) && S_ISDIR(st.st_mode)) {
        close(fd);
        return error_set(e, EISDIR, "%s: is a directory", path);
    }
    gzFile file = fd >= 0 ? gzdopen(fd, "r") : NULL;
    if (!file) {
        int bad = errno ? errno : ENOMEM;
        if (fd >= 0)
            close(fd);
        return error_set(e, bad, "%s: %s", path, strerror(bad));
    }
    struct trace_file *f = *out = mem_alloc(sizeof(*f));
    *f = (struct trace_file){.file = file, .fd = fd, .path = path};
    f->bytes = mem_alloc(TRACE_FILE_LINE_MAX + READ_BYTES);
    return 0;
}

uint64_t trace_file_written_ns(const struct trace_file *f)
{
    struct stat st;
    if (fstat(f->fd, &st) || !S_ISREG(st.st_mode) || !st.st_size)
        return clock_ns(CLOCK_REALTIME);
    return (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
}

bool trace_file_is(const struct trace_file *f, const char *path)
{
    struct stat a, b;
    return !fstat(f->fd, &a) && !stat(path, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void trace_file_close(struct trace_file *f)
{
    if (!f)
        return;
    gzclose(f->file);
    free(f->bytes);
    free(f);
}

/* Moves what is left to the front, and reads more behind it. */
static int fill(struct trace_file *f, struct error *e)
{
    int zlib_error = Z_OK;
    f->end -= f->begin;
    memmove(f->bytes, f->bytes + f->begin, f->end);
    f->begin = 0;
    const int n = gzread(f->file, f->bytes + f->end, READ_BYTES);
    if (n > 0) {
        f->end += (size_t)n;
        return 0;
    }
    f->over = true;
    const char *why = gzerror(f->file, &zlib_error);
    if (zlib_error == Z_ERRNO)
        return error_set(e, errno, "%s: %s", f->path, strerror(errno));
    if (n < 0 || (zlib_error != Z_OK && zlib_error != Z_STREAM_END))
        return error_set(e, EILSEQ, "%s: the compressed data are damaged or cut (%s)", f->path,
                         strstr(why, ": ") ? strstr(why, ": ") + 2 : why);
    return 0;
}

int trace_file_line(struct trace_file *f, const char **line, size_t *len, struct error *e)
{
    size_t searched = 0;
    for (;;) {
        const char *from = f->bytes + f->begin;
        const char *newline = memchr(from + searched, '\n', f->end - f->begin - searched);
        searched = f->end - f->begin;
        if (newline || (searched && (f->over || searched >= TRACE_FILE_LINE_MAX))) {
            *line = from;
            *len = newline ? (size_t)(newline - from) : searched;
            f->begin += *len + (newline != NULL);
            return 1;
        }
        if (f->over)
            return 0;
        int bad = fill(f, e);
        if (bad)
            return bad;
    }
}
