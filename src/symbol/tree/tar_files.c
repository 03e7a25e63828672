/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/tree/tar_files.h"

#include <errno.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/mem.h"

#define BLOCK      512u
#define PATH_BYTES 4096u
#define READ_BYTES (256u << 10)
#define LZMA_BYTES (UINT64_C(128) << 20) /* a dictionary has 8 MiB, or 64 */

/* zlib reads plain files as they are. */
struct unpack {
    gzFile file;
    lzma_stream xz;
    bool is_xz, at_end;
    uint8_t *in, *out;
    size_t len, taken; /* of `out` */
};

static int fill_xz(struct unpack *u)
{
    u->xz.next_out = u->out;
    u->xz.avail_out = READ_BYTES;
    while (u->xz.avail_out && !u->at_end) {
        if (!u->xz.avail_in) {
            const int n = gzread(u->file, u->in, READ_BYTES);
            if (n < 0)
                return -EIO;
            u->xz.next_in = u->in;
            u->xz.avail_in = (size_t)n;
        }
        const lzma_ret ret = lzma_code(&u->xz, u->xz.avail_in ? LZMA_RUN : LZMA_FINISH);
        u->at_end = ret == LZMA_STREAM_END;
        if (ret != LZMA_OK && ret != LZMA_STREAM_END)
            return -EBADMSG;
    }
    u->len = READ_BYTES - u->xz.avail_out;
    return 0;
}

static int fill(struct unpack *u)
{
    u->taken = 0;
    if (u->is_xz)
        return fill_xz(u);
    const int n = gzread(u->file, u->out, READ_BYTES);
    u->len = n > 0 ? (size_t)n : 0;
    return n < 0 ? -EBADMSG : 0;
}

/* Takes exactly so many bytes; `to` NULL: passes over them. Returns 0, or -EBADMSG: there are not as many. */
static int take(struct unpack *u, void *to, uint64_t len)
{
    for (uint8_t *at = to; len;) {
        int bad = u->taken == u->len ? fill(u) : 0;
        size_t n = u->len - u->taken;
        if (bad || !n)
            return bad ? bad : -EBADMSG;
        n = n < len ? n : (size_t)len;
        if (at) {
            memcpy(at, u->out + u->taken, n);
            at += n;
        }
        u->taken += n;
        len -= n;
    }
    return 0;
}

/* ---- headers ---- */

struct tar {
    struct unpack u;
    tree_file_found found;
    void *arg;
    char path[PATH_BYTES]; /* of the next file, if a header before it told; else "" */
    size_t files;
};

static uint64_t octal(const uint8_t *text, size_t len)
{
    uint64_t n = 0;
    for (size_t i = 0; i < len && (text[i] == ' ' || (text[i] >= '0' && text[i] <= '7')); i++)
        n = text[i] == ' ' ? n : n * 8 + (uint64_t)(text[i] - '0');
    return n;
}

static bool is_header(const uint8_t *h)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : h[i];
    return sum == octal(h + 148, 8);
}

static void set_path(struct tar *t, const uint8_t *h)
{
    const bool has_prefix = !memcmp(h + 257, "ustar", 6) && h[345];
    if (has_prefix)
        snprintf(t->path, PATH_BYTES, "%.155s/%.100s", (const char *)h + 345, (const char *)h);
    else
        snprintf(t->path, PATH_BYTES, "%.100s", (const char *)h);
}

/* "30 path=linux/fs/x.c\n" of a pax header. */
static void take_pax(struct tar *t, const char *text)
{
    const char *at = strstr(text, " path=");
    const size_t len = at ? strcspn(at + 6, "\n") : 0;
    if (len && len < PATH_BYTES)
        snprintf(t->path, PATH_BYTES, "%.*s", (int)len, at + 6);
}

static int take_text(struct tar *t, uint64_t size, char kind)
{
    const char *below = strchr(t->path, '/');
    const bool is_name = kind == 'L' || kind == 'x';
    const bool wanted = (kind == '0' || !kind) && below && tree_files_wants(below + 1);
    const uint64_t padded = (size + BLOCK - 1) / BLOCK * BLOCK;
    if (size > TREE_FILE_MAX || (!wanted && !is_name))
        return take(&t->u, NULL, padded);
    char *text = mem_alloc(size + 1);
    int bad = take(&t->u, text, size);
    bad = bad ? bad : take(&t->u, NULL, padded - size);
    if (!bad)
        text[size] = '\0';
    if (!bad && kind == 'L')
        snprintf(t->path, PATH_BYTES, "%s", text);
    else if (!bad && kind == 'x')
        take_pax(t, text);
    else if (!bad)
        t->found(t->arg, below + 1, text, size);
    t->files += !bad && wanted;
    free(text);
    return bad;
}

static int read_all(struct tar *t)
{
    uint8_t h[BLOCK];
    int bad;
    bool told = false;
    while (!(bad = take(&t->u, h, BLOCK)) && *h) {
        if (!is_header(h))
            return -EBADMSG;
        const char kind = (char)h[156];
        const bool tells = kind == 'L' || kind == 'x'; /* of the next file, perhaps its path */
        if (tells)
            *t->path = '\0';
        else if (!told)
            set_path(t, h);
        bad = take_text(t, octal(h + 124, 12), kind);
        told = tells && *t->path;
        if (bad)
            return bad;
    }
    return bad;
}

int tar_files_read(const char *path, tree_file_found found, void *arg, struct error *e)
{
    static const uint8_t magic[] = {0xfd, '7', 'z', 'X', 'Z', 0};
    struct tar *t = mem_alloc(sizeof(*t));
    struct unpack *u = &t->u;
    *t = (struct tar){.u = {.file = gzopen(path, "rbe"), .xz = LZMA_STREAM_INIT}, .found = found, .arg = arg};
    int bad = u->file ? 0 : -errno;
    if (!bad) {
        u->in = mem_alloc(READ_BYTES);
        u->out = mem_alloc(READ_BYTES);
        const int n = gzread(u->file, u->out, sizeof(magic));
        u->is_xz = n == sizeof(magic) && !memcmp(u->out, magic, sizeof(magic));
        if (gzrewind(u->file) || (u->is_xz && lzma_stream_decoder(&u->xz, LZMA_BYTES, 0) != LZMA_OK))
            bad = -EIO;
        bad = bad ? bad : read_all(t);
        gzclose(u->file);
        lzma_end(&u->xz);
    }
    const bool none = !bad && !t->files;
    free(u->in);
    free(u->out);
    free(t);
    if (none)
        return error_set(e, ENOENT, "%s has no source of a kernel", path);
    return bad == -EBADMSG
               ? error_set(e, EBADMSG, "%s is damaged, or no tar archive of a kernel's source", path)
           : bad ? error_set(e, -bad, "cannot read %s: %s", path, strerror(-bad))
                 : 0;
}
