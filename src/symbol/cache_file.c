/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/cache.h"

#include "base/buf.h"
#include "symbol/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <zlib.h>

/*
 * A file is a header, entries, frames and strings, in the machine's own byte order, and nothing else. A string is named
 * by its offset. Raise FORMAT when the layout changes, or the way names are made: old files are then ignored.
 */
#define FORMAT         1
#define FILE_MAX_BYTES (64U << 20)
#define NO_STRING      UINT32_MAX
#define INLINED        1U
#define STALE_LOCK_S   60

static const char magic[8] = "allium@";

struct header {
    char magic[8];
    uint32_t format;
    uint32_t checksum; /* CRC-32 of all that follows this field */
    uint32_t build_id_len;
    uint32_t origin_kind;
    uint64_t origin_size_bytes;
    int64_t origin_mtime_ns;
    uint32_t link;
    uint32_t entry_count, frame_count, string_bytes;
    unsigned char build_id[SYMBOL_BUILD_ID_MAX];
};

struct stored_entry {
    uint64_t address;
    uint32_t first, len;
};

struct stored_frame {
    uint32_t function, file, line, flags;
};

/** The parts of a file whose sizes add up. */
struct view {
    const struct header *header;
    const struct stored_entry *entries;
    const struct stored_frame *frames;
    const char *strings;
};

static uint32_t checksum(const char *bytes, size_t len)
{
    size_t from = offsetof(struct header, checksum) + sizeof(uint32_t);
    return (uint32_t)crc32_z(0, (const unsigned char *)bytes + from, len - from);
}

static bool is_string(const struct view *v, uint32_t at, bool may_miss)
{
    if (at == NO_STRING)
        return may_miss;
    return at < v->header->string_bytes && (may_miss || v->strings[at]);
}

/** Whether every index and length in the file stays inside it. */
static bool check_contents(const struct view *v)
{
    const struct header *h = v->header;
    if ((h->string_bytes && v->strings[h->string_bytes - 1]) || !is_string(v, h->link, true))
        return false;
    for (uint32_t i = 0; i < h->frame_count; i++)
        if (!is_string(v, v->frames[i].function, false) || !is_string(v, v->frames[i].file, true))
            return false;
    for (uint32_t i = 0; i < h->entry_count; i++) {
        const struct stored_entry *e = &v->entries[i];
        if (e->first > h->frame_count || e->len > h->frame_count - e->first ||
            (e->len && (v->frames[e->first + e->len - 1].flags & INLINED)))
            return false;
    }
    return true;
}

static bool open_view(const char *bytes, size_t len, const unsigned char *build_id, size_t build_id_len,
                      struct view *v)
{
    const struct header *h = (const struct header *)bytes;
    if (len < sizeof(*h) || len > FILE_MAX_BYTES || memcmp(h->magic, magic, sizeof(magic)) != 0 ||
        h->format != FORMAT || h->checksum != checksum(bytes, len))
        return false;
    if (build_id_len > sizeof(h->build_id) || h->build_id_len != build_id_len ||
        memcmp(h->build_id, build_id, build_id_len) != 0 || h->origin_kind > SYMBOL_ORIGIN_SEPARATE)
        return false;
    uint64_t entry_bytes = (uint64_t)h->entry_count * sizeof(struct stored_entry);
    uint64_t frame_bytes = (uint64_t)h->frame_count * sizeof(struct stored_frame);
    if (sizeof(*h) + entry_bytes + frame_bytes + h->string_bytes != len)
        return false;
    v->header = h;
    v->entries = (const struct stored_entry *)(bytes + sizeof(*h));
    v->frames = (const struct stored_frame *)(bytes + sizeof(*h) + entry_bytes);
    v->strings = bytes + sizeof(*h) + entry_bytes + frame_bytes;
    return check_contents(v);
}

static const char *get_string(const struct view *v, uint32_t at)
{
    return at == NO_STRING ? NULL : v->strings + at;
}

static void take_view(struct symbol_cache *c, const struct view *v)
{
    const struct header *h = v->header;
    c->origin = (struct symbol_origin){.kind = (enum symbol_origin_kind)h->origin_kind,
                                       .size_bytes = h->origin_size_bytes,
                                       .mtime_ns = h->origin_mtime_ns,
                                       .link = get_string(v, h->link)};
    struct symbol_frame *frames = mem_array(h->frame_count, sizeof(*frames));
    *vec_push(&c->blocks) = frames;
    for (uint32_t i = 0; i < h->frame_count; i++)
        frames[i] = (struct symbol_frame){.function = get_string(v, v->frames[i].function),
                                          .file = get_string(v, v->frames[i].file),
                                          .line = v->frames[i].line,
                                          .inlined = v->frames[i].flags & INLINED};
    for (uint32_t i = 0; i < h->entry_count; i++) {
        const struct stored_entry *e = &v->entries[i];
        bool added;
        map_put_u64(&c->index, e->address, c->entries.len, &added);
        if (added)
            *vec_push(&c->entries) = (struct symbol_cache_entry){e->address, frames + e->first, e->len};
    }
}

int symbol_cache_parse(struct symbol_cache *c, char *bytes, size_t len, const unsigned char *build_id,
                       size_t build_id_len)
{
    struct view v;
    if (!open_view(bytes, len, build_id, build_id_len, &v)) {
        free(bytes);
        return -EBADMSG;
    }
    *vec_push(&c->blocks) = bytes;
    take_view(c, &v);
    return 0;
}

static char *path_of(const char *dir, const unsigned char *build_id, size_t len, const char *suffix)
{
    struct buf path = BUF_INIT;
    buf_printf(&path, "%s/", dir);
    for (size_t i = 0; i < len; i++)
        buf_printf(&path, "%02x", build_id[i]);
    buf_addstr(&path, suffix);
    return buf_detach(&path);
}

/** All of a file that is ours (or root's) and not too long, in heap memory. */
static int read_whole(const char *path, char **bytes, size_t *len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    struct stat st;
    int err = fstat(fd, &st) < 0 ? -errno : 0;
    if (!err && (!S_ISREG(st.st_mode) || st.st_size > (off_t)FILE_MAX_BYTES ||
                 (st.st_uid != geteuid() && st.st_uid != 0)))
        err = -EBADMSG;
    if (!err) {
        *bytes = mem_alloc((size_t)st.st_size);
        *len = 0;
        ssize_t got;
        while (*len < (size_t)st.st_size && (got = read(fd, *bytes + *len, (size_t)st.st_size - *len)) > 0)
            *len += (size_t)got;
    }
    close(fd);
    return err;
}

int symbol_cache_load(struct symbol_cache *c, const char *dir, const unsigned char *build_id,
                      size_t build_id_len)
{
    char *path = path_of(dir, build_id, build_id_len, ""), *bytes = NULL;
    size_t len = 0;
    int err = read_whole(path, &bytes, &len);
    free(path);
    return err ? err : symbol_cache_parse(c, bytes, len, build_id, build_id_len);
}

struct writer {
    struct buf entries, frames, strings;
    struct map offsets; /* text -> where it stands in strings */
    uint32_t entry_count, frame_count;
};

static uint32_t put_string(struct writer *w, const char *text)
{
    if (!text)
        return NO_STRING;
    size_t len = strlen(text);
    bool added;
    size_t at = map_put(&w->offsets, text, len, w->strings.len, &added);
    if (added)
        buf_add(&w->strings, text, len + 1);
    return (uint32_t)at;
}

static void put_entry(struct writer *w, const struct symbol_cache_entry *e)
{
    struct stored_entry entry = {e->address, w->frame_count, e->len};
    buf_add(&w->entries, &entry, sizeof(entry));
    w->entry_count++;
    for (uint32_t i = 0; i < e->len; i++) {
        const struct symbol_frame *f = &e->frames[i];
        struct stored_frame frame = {put_string(w, f->function), put_string(w, f->file), f->line,
                                     f->inlined ? INLINED : 0};
        buf_add(&w->frames, &frame, sizeof(frame));
        w->frame_count++;
    }
}

/** The whole file as bytes, as far as it fits the limit: what is left out is looked up again another time. */
static void compose(const struct symbol_cache *c, const unsigned char *build_id, size_t build_id_len,
                    struct buf *out)
{
    struct writer w = {0};
    struct header h = {.format = FORMAT,
                       .build_id_len = (uint32_t)build_id_len,
                       .origin_kind = (uint32_t)c->origin.kind,
                       .origin_size_bytes = c->origin.size_bytes,
                       .origin_mtime_ns = c->origin.mtime_ns,
                       .link = put_string(&w, c->origin.link)};
    memcpy(h.magic, magic, sizeof(magic));
    memcpy(h.build_id, build_id, build_id_len);
    vec_each (struct symbol_cache_entry, e, &c->entries) {
        if (w.entries.len + w.frames.len + w.strings.len > FILE_MAX_BYTES / 2)
            break;
        put_entry(&w, e);
    }
    h.entry_count = w.entry_count;
    h.frame_count = w.frame_count;
    h.string_bytes = (uint32_t)w.strings.len;
    buf_add(out, &h, sizeof(h));
    buf_add(out, w.entries.data, w.entries.len);
    buf_add(out, w.frames.data, w.frames.len);
    buf_add(out, w.strings.data, w.strings.len);
    uint32_t sum = checksum(out->data, out->len);
    memcpy(out->data + offsetof(struct header, checksum), &sum, sizeof(sum));
    buf_release(&w.entries);
    buf_release(&w.frames);
    buf_release(&w.strings);
    map_release(&w.offsets);
}

/** Makes the file that will replace the old one. Its existence is the lock; one left by a crash expires. */
static int create_new(const char *path)
{
    for (int attempt = 0;; attempt++) {
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd >= 0)
            return fd;
        struct stat st;
        if (errno != EEXIST || attempt || lstat(path, &st) < 0)
            return -errno;
        /* The kernel stamps files with a finer clock than time() reads: a new lock can lie in the future. */
        time_t age = time(NULL) - st.st_mtime;
        if (age > -STALE_LOCK_S && age < STALE_LOCK_S)
            return -EBUSY;
        unlink(path);
    }
}

static int write_whole(int fd, const struct buf *bytes)
{
    for (size_t done = 0; done < bytes->len;) {
        ssize_t wrote = write(fd, bytes->data + done, bytes->len - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return wrote < 0 ? -errno : -EIO;
        done += (size_t)wrote;
    }
    return 0;
}

/** Adds what another process has put into the file. -EEXIST when that is better than ours. */
static int merge(struct symbol_cache *c, const char *dir, const unsigned char *build_id, size_t build_id_len)
{
    struct symbol_cache other = {0};
    int err = 0;
    if (symbol_cache_load(&other, dir, build_id, build_id_len) == 0) {
        bool same = other.origin.kind == c->origin.kind && other.origin.mtime_ns == c->origin.mtime_ns &&
                    other.origin.size_bytes == c->origin.size_bytes;
        if (same) {
            vec_each (struct symbol_cache_entry, e, &other.entries)
                symbol_cache_add(c, e->address, e->frames, e->len);
            vec_each (void *, block, &other.blocks)
                *vec_push(&c->blocks) = *block;
            other.blocks.len = 0;
        } else if (c->origin.kind == SYMBOL_ORIGIN_NONE) {
            err = -EEXIST;
        }
    }
    symbol_cache_release(&other);
    return err;
}

int symbol_cache_save(struct symbol_cache *c, const char *dir, const unsigned char *build_id,
                      size_t build_id_len)
{
    if (!build_id_len || build_id_len > SYMBOL_BUILD_ID_MAX)
        return -EINVAL;
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return -errno;
    struct buf bytes = BUF_INIT;
    char *path = path_of(dir, build_id, build_id_len, "");
    char *fresh = path_of(dir, build_id, build_id_len, ".new");
    int fd = create_new(fresh);
    int err = fd < 0 ? fd : merge(c, dir, build_id, build_id_len);
    if (!err) {
        compose(c, build_id, build_id_len, &bytes);
        err = write_whole(fd, &bytes);
    }
    if (fd >= 0 && close(fd) < 0 && !err)
        err = -errno;
    if (!err && rename(fresh, path) < 0)
        err = -errno;
    if (err && fd >= 0)
        unlink(fresh);
    c->dirty = c->dirty && err;
    buf_release(&bytes);
    free(path);
    free(fresh);
    return err;
}
