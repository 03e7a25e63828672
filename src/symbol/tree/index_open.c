/* SPDX-License-Identifier: BSD-2-Clause */
/* The index in its file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/read_file.h"
#include "symbol/tree/index_file.h"
#include "symbol/tree/tree_files.h"

#define FILE_BYTES_MAX (256u << 20)

static int load(struct source_index **out, const char *path, const char *source, uint64_t identity)
{
    struct buf bytes = BUF_INIT;
    int bad = file_read(path, FILE_BYTES_MAX, &bytes);
    if (bad) {
        buf_release(&bytes);
        return bad;
    }
    const size_t len = bytes.len;
    bad = source_index_parse(out, buf_detach(&bytes), len);
    if (!bad && !source_index_is_of(*out, source, identity)) {
        source_index_free(*out);
        *out = NULL;
        bad = -ESTALE;
    }
    return bad;
}

static bool write_all(int fd, const struct buf *bytes)
{
    for (size_t done = 0; done < bytes->len;) {
        const ssize_t n = write(fd, bytes->data + done, bytes->len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* What cannot be kept is made again another time. */
static void save(const char *cache, const char *path, const struct buf *bytes)
{
    struct buf fresh = BUF_INIT;
    mkdir(cache, 0700);
    buf_printf(&fresh, "%s.XXXXXX", path);
    const int fd = mkostemp(fresh.data, O_CLOEXEC);
    const bool whole = fd >= 0 && write_all(fd, bytes);
    if (fd >= 0 && (close(fd) || !whole || rename(fresh.data, path)))
        unlink(fresh.data);
    buf_release(&fresh);
}

static int build(struct source_index **out, const char *source, uint64_t identity, const char *cache,
                 const char *path, struct error *e)
{
    struct buf bytes = BUF_INIT;
    int bad = index_build(&bytes, source, identity, e);
    if (!bad && cache)
        save(cache, path, &bytes);
    const size_t len = bytes.len;
    if (!bad && source_index_parse(out, buf_detach(&bytes), len))
        bad = error_set(e, EBADMSG, "the index of %s is damaged", source);
    buf_release(&bytes);
    return bad;
}

int source_index_open(struct source_index **out, const char *source, const char *cache, bool *made,
                      struct error *e)
{
    uint64_t identity;
    struct buf path = BUF_INIT;
    char *real = realpath(source, NULL);
    const char *name = real ? real : source;
    *out = NULL;
    int bad = tree_files_identity(name, &identity, e);
    if (cache)
        buf_printf(&path, "%s/source-%016llx.index", cache,
                   (unsigned long long)index_hash(INDEX_HASH, name, strlen(name)));
    const bool is_new = !bad && (!cache || load(out, buf_str(&path), name, identity));
    if (is_new)
        bad = build(out, name, identity, cache, buf_str(&path), e);
    if (made)
        *made = is_new;
    buf_release(&path);
    free(real);
    return bad;
}
