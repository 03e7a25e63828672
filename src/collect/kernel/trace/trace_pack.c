/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/trace/trace_pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/read_file.h"

#define BLOCK_BYTES  512u
#define STATE_MAX    (16u << 20)
#define KALLSYMS_MAX (256u << 20)
#define NAME_BYTES   257u

/* ---- a folder ---- */

static char *file_in(const char *folder, const char *name)
{
    struct buf path = BUF_INIT;
    buf_printf(&path, "%s/%s", folder, name);
    return buf_detach(&path);
}

bool trace_pack_is_folder(const char *path)
{
    struct stat st;
    char *trace = file_in(path, "trace");
    const bool is = !stat(trace, &st) && S_ISREG(st.st_mode);
    free(trace);
    return is;
}

int trace_pack_open(struct trace_pack *p, const char *path, struct error *e)
{
    *p = (struct trace_pack){.trace = NULL};
    char *trace = file_in(path, "trace"), *kallsyms = file_in(path, "kallsyms"),
         *state = file_in(path, "state");
    int fd = open(trace, O_RDONLY | O_CLOEXEC);
    int bad = fd < 0 ? error_set(e, errno, "%s: %s", trace, strerror(errno))
                     : packed_input_open_fd(&p->trace, fd, path, e);
    if (!bad) {
        file_read(kallsyms, KALLSYMS_MAX, &p->kallsyms);
        kernel_state_read(&p->state, state, KERNEL_STATE_MEMORY | KERNEL_STATE_KERNEL);
        p->written_ns = packed_input_written_ns(p->trace);
    }
    free(trace);
    free(kallsyms);
    free(state);
    return bad;
}

/* ---- an archive ---- */

/* What the head of a member says: POSIX's ustar, and what GNU tar and busybox write. */
struct member {
    char name[NAME_BYTES]; /* behind the name of the folder: "trace", "state/proc/slabinfo" */
    bool is_file;
    uint64_t bytes, written_ns;
};

bool trace_pack_is_archive(const uint8_t *bytes, size_t n)
{
    return n >= BLOCK_BYTES && !memcmp(bytes + 257, "ustar", 5);
}

/* Octal digits, with blanks or a NUL around them. */
static bool read_octal(const uint8_t *at, size_t n, uint64_t *out)
{
    size_t k = 0;
    *out = 0;
    while (k < n && at[k] == ' ')
        k++;
    const size_t first = k;
    for (; k < n && at[k] >= '0' && at[k] <= '7'; k++)
        *out = *out << 3 | (uint64_t)(at[k] - '0');
    return k > first && (k == n || at[k] == ' ' || !at[k]);
}

static bool read_head(const uint8_t block[static BLOCK_BYTES], struct member *m)
{
    char name[NAME_BYTES];
    uint64_t seconds;
    if (!trace_pack_is_archive(block, BLOCK_BYTES) || !read_octal(block + 124, 12, &m->bytes) ||
        !read_octal(block + 136, 12, &seconds))
        return false;
    snprintf(name, sizeof(name), "%.100s", (const char *)block);
    const char *from = !strncmp(name, "./", 2) ? name + 2 : name, *slash = strchr(from, '/');
    snprintf(m->name, sizeof(m->name), "%s", slash ? slash + 1 : "");
    m->is_file = (block[156] == '0' || !block[156]) && !block[345]; /* ours have no names with a prefix */
    m->written_ns = seconds < UINT32_MAX ? seconds * 1000000000u : 0;
    return true;
}

/* Takes exactly `n` bytes: to `out`, to a file, or away. Returns 0, -EBADMSG: the archive is cut, or -errno. */
static int take(struct packed_input *in, uint64_t n, struct buf *out, int fd, struct error *e)
{
    uint8_t bytes[4096];
    int bad = 0;
    while (n && !bad) {
        size_t got;
        bad = packed_input_read(in, bytes, n < sizeof(bytes) ? (size_t)n : sizeof(bytes), &got, e);
        if (bad || !got)
            return bad ? bad : -EBADMSG;
        if (out)
            buf_add(out, bytes, got);
        else if (fd >= 0 && write(fd, bytes, got) != (ssize_t)got)
            return error_set(e, errno ? errno : ENOSPC, "cannot unpack the trace into a temporary file: %s",
                             strerror(errno ? errno : ENOSPC));
        n -= got;
    }
    return bad;
}

static int take_trace(struct trace_pack *p, struct packed_input *in, const struct member *m, const char *path,
                      struct error *e)
{
    struct error later;
    int fd = packed_input_temporary(e);
    if (fd < 0)
        return fd;
    int bad = take(in, m->bytes, NULL, fd, e);
    lseek(fd, 0, SEEK_SET);
    int failed = packed_input_open_fd(&p->trace, fd, path, bad ? &later : e);
    p->written_ns = m->written_ns;
    return bad ? bad : failed;
}

static int take_state(struct trace_pack *p, struct packed_input *in, const struct member *m, struct error *e)
{
    struct buf text = BUF_INIT;
    int bad = take(in, m->bytes, &text, -1, e);
    if (!bad)
        kernel_state_add_copy(&p->state, m->name + strlen("state"), buf_str(&text), text.len);
    buf_release(&text);
    return bad;
}

static int take_member(struct trace_pack *p, struct packed_input *in, const struct member *m,
                       const char *path, struct error *e)
{
    if (m->is_file && !p->trace && !strcmp(m->name, "trace"))
        return take_trace(p, in, m, path, e);
    if (m->is_file && !p->kallsyms.len && !strcmp(m->name, "kallsyms") && m->bytes <= KALLSYMS_MAX)
        return take(in, m->bytes, &p->kallsyms, -1, e);
    if (m->is_file && !strncmp(m->name, "state/", 6) && m->bytes <= STATE_MAX)
        return take_state(p, in, m, e);
    return take(in, m->bytes, NULL, -1, e);
}

/* Members begin at blocks; two empty blocks end the archive. */
static int read_members(struct trace_pack *p, struct packed_input *in, const char *path, struct error *e)
{
    static const uint8_t empty[BLOCK_BYTES];
    struct buf block = BUF_INIT;
    struct member m;
    int bad = 0;
    for (;;) {
        buf_reset(&block);
        bad = take(in, BLOCK_BYTES, &block, -1, e);
        if (bad || !memcmp(block.data, empty, BLOCK_BYTES))
            break;
        bad = read_head((const uint8_t *)block.data, &m) ? take_member(p, in, &m, path, e) : -EBADMSG;
        bad = bad ? bad : take(in, -m.bytes % BLOCK_BYTES, NULL, -1, e);
        if (bad)
            break;
    }
    buf_release(&block);
    return bad;
}

int trace_pack_read(struct trace_pack *p, struct packed_input *archive, const char *path, struct error *e)
{
    *p = (struct trace_pack){.trace = NULL};
    int bad = read_members(p, archive, path, e);
    if (bad == -EBADMSG)
        return error_set(e, EBADMSG, "%s: the archive is damaged or cut", path);
    if (!bad && !p->trace)
        return error_set(e, ENODATA,
                         "%s: is an archive without a trace: allium sys import --script makes one", path);
    return bad;
}

void trace_pack_release(struct trace_pack *p)
{
    packed_input_close(p->trace);
    buf_release(&p->kallsyms);
    kernel_state_release(&p->state);
}
