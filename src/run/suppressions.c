/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/suppressions.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/vec.h"

#define HEAD       "allium-watch-state 1\n"
#define LINE_BYTES 34 /* 16 digits, a blank, 16 digits, a newline */

struct image {
    uint64_t id;
    struct VEC(uint64_t) serials; /* ascending */
};

struct suppressions {
    struct VEC(struct image) images;
    bool changed;
};

struct suppressions *suppressions_new(void)
{
    return mem_alloc(sizeof(struct suppressions));
}

void suppressions_free(struct suppressions *d)
{
    if (!d)
        return;
    vec_each (struct image, i, &d->images)
        vec_release(&i->serials);
    vec_release(&d->images);
    free(d);
}

static struct image *find(const struct suppressions *d, uint64_t id)
{
    vec_each (struct image, i, &d->images)
        if (i->id == id)
            return i;
    return NULL;
}

static int ascending(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static bool among(const uint64_t *serials, size_t n, uint64_t serial)
{
    return n && bsearch(&serial, serials, n, sizeof(serial), ascending);
}

bool suppressions_has(const struct suppressions *d, uint64_t image_id, uint64_t serial)
{
    const struct image *i = find(d, image_id);
    return i && among(i->serials.at, i->serials.len, serial);
}

bool suppressions_has_image(const struct suppressions *d, uint64_t image_id)
{
    return find(d, image_id) != NULL;
}

bool suppressions_changed(const struct suppressions *d)
{
    return d->changed;
}

uint64_t suppressions_add(struct suppressions *d, uint64_t image_id, const uint64_t *serials, size_t n)
{
    struct image *i = find(d, image_id);
    if (!n)
        return 0;
    if (!i) {
        i = vec_push(&d->images);
        i->id = image_id;
    }
    size_t before = i->serials.len, kept = 0;
    for (size_t k = 0; k < n; k++)
        *vec_push(&i->serials) = serials[k];
    qsort(i->serials.at, i->serials.len, sizeof(uint64_t), ascending);
    for (size_t k = 0; k < i->serials.len; k++)
        if (!kept || i->serials.at[k] != i->serials.at[kept - 1])
            i->serials.at[kept++] = i->serials.at[k];
    i->serials.len = kept;
    d->changed |= kept != before;
    return kept - before;
}

static bool is_not_empty(void *arg, uint64_t image_id)
{
    const struct image *i = find(arg, image_id);
    return i && i->serials.len;
}

void suppressions_retain(struct suppressions *d, uint64_t image_id, const uint64_t *serials, size_t n)
{
    struct image *i = find(d, image_id);
    size_t kept = 0;
    if (!i)
        return;
    for (size_t k = 0; k < i->serials.len; k++)
        if (among(serials, n, i->serials.at[k]))
            i->serials.at[kept++] = i->serials.at[k];
    d->changed |= kept != i->serials.len;
    i->serials.len = kept;
    if (!kept)
        suppressions_forget(d, is_not_empty, d);
}

void suppressions_forget(struct suppressions *d, bool (*keep)(void *arg, uint64_t image_id), void *arg)
{
    size_t n = d->images.len;
    /* from the end, so that the element that moves into the gap has been checked already */
    for (size_t k = n; k-- > 0;) {
        struct image *i = &d->images.at[k];
        if (keep(arg, i->id))
            continue;
        vec_release(&i->serials);
        *i = d->images.at[--d->images.len];
    }
    d->changed |= n != d->images.len;
}

/* ---- the file ---- */

/* Exactly 16 digits. */
static bool read_digits(const char *text, uint64_t *value)
{
    uint64_t v = 0;
    for (int i = 0; i < 16; i++) {
        char c = text[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        v = v << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *value = v;
    return true;
}

/* Reads one line. The samples of an image must be consecutive. */
static bool read_line(const struct suppressions *d, const char *text, size_t len, uint64_t *image,
                      uint64_t *serial)
{
    uint64_t before = *image;
    if (len < LINE_BYTES || text[16] != ' ' || text[LINE_BYTES - 1] != '\n' || !read_digits(text, image) ||
        !read_digits(text + 17, serial))
        return false;
    return *image == before ||
           (!suppressions_has_image(d, *image) && d->images.len < SUPPRESSIONS_IMAGES_MAX);
}

static int parse(struct suppressions *d, const char *path, const char *text, size_t len, struct error *e)
{
    size_t at = strlen(HEAD), line = 2;
    struct VEC(uint64_t) serials = {0};
    uint64_t image = 0, serial;
    if (len < at || memcmp(text, HEAD, at))
        return error_set(e, EINVAL,
                         "%s:1: not a state file of allium watch, so it is not overwritten: use another file",
                         path);
    for (; at < len; at += LINE_BYTES, line++) {
        uint64_t next = image;
        if (!read_line(d, text + at, len - at, &next, &serial)) {
            vec_release(&serials);
            return error_set(e, EINVAL,
                             "%s:%zu: invalid line: remove the file to start with no dismissed samples", path,
                             line);
        }
        if (next != image) {
            suppressions_add(d, image, serials.at, serials.len);
            serials.len = 0;
        }
        image = next;
        *vec_push(&serials) = serial;
    }
    suppressions_add(d, image, serials.at, serials.len);
    vec_release(&serials);
    d->changed = false;
    return 0;
}

static int read_file(int fd, struct buf *text)
{
    char piece[65536];
    for (ssize_t n; (n = read(fd, piece, sizeof(piece)));) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (text->len + (size_t)n > SUPPRESSIONS_FILE_MAX)
            return -EFBIG;
        buf_add(text, piece, (size_t)n);
    }
    return 0;
}

int suppressions_load(struct suppressions *d, const char *path, struct error *e)
{
    struct buf text = BUF_INIT;
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? 0 : error_set(e, errno, "%s: %s", path, strerror(errno));
    int bad = fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? read_file(fd, &text) : -EINVAL;
    close(fd);
    if (bad)
        error_set(e, -bad, "%s: %s", path, bad == -EINVAL ? "not a regular file" : strerror(-bad));
    else
        bad = parse(d, path, buf_str(&text), text.len, e);
    buf_release(&text);
    return bad;
}

static int write_all(int fd, const struct suppressions *d)
{
    struct buf text = BUF_INIT;
    int bad = 0;
    buf_addstr(&text, HEAD);
    vec_each (const struct image, i, &d->images)
        for (size_t k = 0; k < i->serials.len; k++)
            buf_printf(&text, "%016" PRIx64 " %016" PRIx64 "\n", i->id, i->serials.at[k]);
    for (size_t done = 0; done < text.len && !bad;) {
        ssize_t n = write(fd, text.data + done, text.len - done);
        if (n < 0 && errno != EINTR)
            bad = -errno;
        done += n > 0 ? (size_t)n : 0;
    }
    buf_release(&text);
    return bad ? bad : fsync(fd) ? -errno : 0;
}

int suppressions_save(struct suppressions *d, const char *path, struct error *e)
{
    struct buf beside = BUF_INIT;
    buf_printf(&beside, "%s.XXXXXX", path);
    int fd = mkostemp(beside.data, O_CLOEXEC); /* mode 0600 */
    int bad = fd < 0 ? -errno : write_all(fd, d);
    if (fd >= 0) {
        if (close(fd) && !bad)
            bad = -errno;
        if (!bad && rename(beside.data, path))
            bad = -errno;
        if (bad)
            unlink(beside.data);
    }
    buf_release(&beside);
    if (bad)
        return error_set(e, -bad, "cannot save the dismissed samples in %s: %s", path, strerror(-bad));
    d->changed = false;
    return 0;
}
