/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES 16384u

int lines_read(int folder, const char *path, size_t max, struct buf *out)
{
    int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t n = 0;
    if (fd < 0)
        return -errno;
    do {
        buf_reserve(out, CHUNK_BYTES);
        n = read(fd, out->data + out->len, CHUNK_BYTES);
        if (n > 0)
            out->len += (size_t)n;
        out->data[out->len] = '\0';
    } while ((n > 0 && out->len <= max) || (n < 0 && errno == EINTR));
    int bad = n < 0 ? -errno : out->len > max ? -E2BIG : 0;
    close(fd);
    return bad;
}

bool lines_next(const char **text, char line[static LINES_BYTES])
{
    const char *begin = *text;
    if (!*begin)
        return false;
    size_t len = strcspn(begin, "\n"), kept = len < LINES_BYTES ? len : LINES_BYTES - 1;
    memcpy(line, begin, kept);
    line[kept] = '\0';
    *text = begin + len + (begin[len] == '\n');
    return true;
}

uint64_t lines_times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

bool lines_number(const char **at, uint64_t *value)
{
    const char *p = *at + strspn(*at, " \t");
    uint64_t sum = 0;
    if (*p < '0' || *p > '9')
        return false;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(sum, 10u, &sum) || __builtin_add_overflow(sum, (unsigned)(*p - '0'), &sum))
            sum = UINT64_MAX; /* whatever follows overflows again */
    *value = sum;
    *at = p;
    return true;
}

bool lines_value(const char *line, const char *key, uint64_t *value)
{
    size_t len = strlen(key);
    if (strncmp(line, key, len))
        return false;
    const char *p = line + len;
    p += *p == ':';
    if (*p != ' ' && *p != '\t')
        return false;
    if (!lines_number(&p, value))
        return false;
    if (!strcmp(p, " kB"))
        *value = lines_times(*value, 1024);
    return true;
}

bool lines_word(const char **at, char *out, size_t size)
{
    const char *p = *at + strspn(*at, " \t");
    size_t len = strcspn(p, " \t"), kept = len < size ? len : size - 1;
    memcpy(out, p, kept);
    out[kept] = '\0';
    *at = p + len;
    return len;
}
