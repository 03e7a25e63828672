/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "symbol/elf_file.h"

#include "base/buf.h"
#include "base/guard.h"
#include "symbol/zstd_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <linux/openat2.h>

/* Someone else's file is copied rather than mapped, so that cutting it short cannot kill us; not if it is this big. */
#define COPY_MAX_BYTES (1ULL << 30)

/* How long a stranger's file may take to be read, and those after one that took longer. */
#define FIRST_MS 10000
#define LATER_MS 200

static bool is_here(const char *root)
{
    return !root || !root[0] || !strcmp(root, "/");
}

/** A descriptor that only names the file: nothing happens to a device or a pipe. */
static int name_file(const char *root, const char *path)
{
    if (is_here(root)) {
        int fd = open(path, O_PATH | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
    }
    int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
    int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
    int err = fd < 0 ? -errno : fd;
    close(dir);
    if (err != -ENOSYS && err != -EPERM)
        return err;
    struct buf whole = BUF_INIT;
    buf_printf(&whole, "%s/%s", root, path);
    fd = open(buf_str(&whole), O_PATH | O_CLOEXEC);
    err = fd < 0 ? -errno : fd;
    buf_release(&whole);
    return err;
}

/** A readable descriptor of a regular file, or -errno; `*st` describes it. */
static int open_file(const char *root, const char *path, struct stat *st)
{
    int named = name_file(root, path);
    if (named < 0)
        return named;
    int err = 0;
    if (fstat(named, st) < 0)
        err = -errno;
    else if (!S_ISREG(st->st_mode))
        err = -ENOEXEC;
    int fd = -1;
    if (!err) {
        char link[64];
        snprintf(link, sizeof(link), "/proc/self/fd/%d", named);
        fd = open(link, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        err = fd < 0 ? -errno : 0;
    }
    close(named);
    return err ? err : fd;
}

static int64_t mtime_of(const struct stat *st)
{
    return (int64_t)((uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec);
}

static int identify(const char *root, const char *path, struct symbol_identity *out)
{
    struct stat st;
    int fd = name_file(root, path);
    if (fd < 0)
        return fd;
    int err = fstat(fd, &st) < 0 ? -errno : 0;
    close(fd);
    if (err)
        return err;
    memset(out, 0, sizeof(*out));
    out->device = st.st_dev;
    out->inode = st.st_ino;
    out->size_bytes = (uint64_t)st.st_size;
    out->mtime_ns = mtime_of(&st);
    return 0;
}

bool symbol_object_root_exists(const char *root)
{
    int fd = is_here(root) ? -1 : open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return is_here(root) || fd >= 0;
}

/* Of a relocatable file the data are changed later (relocatable.h), so that they must not be the file itself. */
static Elf *begin_elf(int fd, bool copy)
{
    GElf_Ehdr header;
    Elf *elf = elf_begin(fd, copy ? ELF_C_READ : ELF_C_READ_MMAP, NULL);
    if (copy || !elf || !gelf_getehdr(elf, &header) || header.e_type != ET_REL)
        return elf;
    elf_end(elf);
    return elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
}

/** Takes the descriptor. The handle needs none afterwards: the file is mapped or copied. */
static Elf *open_elf(int fd, bool trusted, uint64_t size)
{
    GElf_Ehdr header;
    elf_version(EV_CURRENT);
    Elf *elf = begin_elf(fd, !trusted && size <= COPY_MAX_BYTES);
    bool packed = elf && trusted && elf_kind(elf) == ELF_K_NONE; /* modules of the kernel may be */
    if (packed) {
        const int unpacked = zstd_file_unpack(fd, COPY_MAX_BYTES);
        elf_end(elf);
        elf = unpacked < 0 ? dwelf_elf_begin(fd) : begin_elf(unpacked, false);
        if (unpacked >= 0)
            close(unpacked);
    }
    if (elf && (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header) ||
                (header.e_type != ET_DYN && header.e_type != ET_EXEC && header.e_type != ET_REL) ||
                (!packed && elf_cntl(elf, ELF_C_FDREAD) != 0))) {
        elf_end(elf);
        elf = NULL;
    }
    close(fd);
    return elf;
}

static int open_object(const char *root, const char *path, struct symbol_object **out)
{
    struct stat st;
    *out = NULL;
    int fd = open_file(root, path, &st);
    if (fd < 0)
        return fd;
    /* Within another root the user 0 may be a stranger, too. */
    bool trusted = is_here(root) && (st.st_uid == 0 || st.st_uid == geteuid());
    if (!is_here(root) &&
        (uint64_t)st.st_size > COPY_MAX_BYTES) { /* a page that never comes would be the end of us */
        close(fd);
        return -EFBIG;
    }
    Elf *elf = open_elf(fd, trusted, (uint64_t)st.st_size);
    if (!elf)
        return -ENOEXEC;
    struct symbol_object *o = mem_alloc(sizeof(*o));
    o->elf = elf;
    o->path = mem_strdup(path);
    o->root = mem_strdup(is_here(root) ? "" : root);
    o->size_bytes = (uint64_t)st.st_size;
    o->mtime_ns = mtime_of(&st);
    o->trusted = trusted;
    *out = o;
    return 0;
}

/* Files of another root may be on a file system that nobody serves: what is asked of them is asked in a thread of
 * its own. */
struct request {
    char *root, *path; /* left behind with a thread that does not return */
    int err;
    struct symbol_identity identity;
    struct symbol_object *object;
};

static void identify_guarded(void *work)
{
    struct request *r = work;
    r->err = identify(r->root, r->path, &r->identity);
}

static void open_guarded(void *work)
{
    struct request *r = work;
    r->err = open_object(r->root, r->path, &r->object);
}

static int run_request(guarded_fn *call, const char *root, const char *path, struct request *r)
{
    static unsigned patience_ms = FIRST_MS;
    *r = (struct request){.root = mem_strdup(root), .path = mem_strdup(path)};
    int bad = guard_run(call, r, sizeof(*r), patience_ms);
    if (bad) {
        patience_ms = LATER_MS;
        return bad;
    }
    free(r->root);
    free(r->path);
    return r->err;
}

int symbol_object_identify(const char *root, const char *path, struct symbol_identity *out)
{
    struct request r;
    if (is_here(root))
        return identify(root, path, out);
    int err = run_request(identify_guarded, root, path, &r);
    if (!err)
        *out = r.identity;
    return err;
}

int symbol_object_open(const char *root, const char *path, struct symbol_object **out)
{
    struct request r;
    if (is_here(root))
        return open_object(root, path, out);
    int err = run_request(open_guarded, root, path, &r);
    *out = err ? NULL : r.object;
    return err;
}

bool symbol_object_has_addresses(const struct symbol_object *o)
{
    GElf_Ehdr header;
    return gelf_getehdr(o->elf, &header) && header.e_type != ET_REL;
}

void symbol_object_free(struct symbol_object *o)
{
    if (!o)
        return;
    elf_end(o->elf);
    free(o->path);
    free(o->root);
    free(o);
}

size_t symbol_object_build_id(const struct symbol_object *o, const unsigned char **bits)
{
    const void *found = NULL;
    ssize_t len = dwelf_elf_gnu_build_id(o->elf, &found);
    if (len <= 0 || len > SYMBOL_BUILD_ID_MAX || !found)
        return 0;
    *bits = found;
    return (size_t)len;
}

bool symbol_object_has_build_id(const struct symbol_object *o, const unsigned char *bits, size_t len)
{
    const unsigned char *own;
    return symbol_object_build_id(o, &own) == len && len && !memcmp(own, bits, len);
}

size_t symbol_object_alternate(const struct symbol_object *o, const char **name, const unsigned char **bits)
{
    size_t names;
    if (elf_getshdrstrndx(o->elf, &names) != 0)
        return 0;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(o->elf, scn));) {
        GElf_Shdr header;
        const char *title = gelf_getshdr(scn, &header) ? elf_strptr(o->elf, names, header.sh_name) : NULL;
        if (!title || strcmp(title, ".gnu_debugaltlink") != 0 || (header.sh_flags & SHF_COMPRESSED))
            continue;
        const Elf_Data *data = elf_rawdata(scn, NULL);
        const char *end = data && data->d_buf ? memchr(data->d_buf, '\0', data->d_size) : NULL;
        if (!end)
            return 0;
        *name = data->d_buf;
        *bits = (const unsigned char *)end + 1;
        size_t len = data->d_size - (size_t)(end + 1 - *name);
        return len <= SYMBOL_BUILD_ID_MAX ? len : 0;
    }
    return 0;
}

bool symbol_object_has_dwarf(const struct symbol_object *o)
{
    size_t names;
    if (elf_getshdrstrndx(o->elf, &names) != 0)
        return false;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(o->elf, scn));) {
        GElf_Shdr header;
        if (!gelf_getshdr(scn, &header) || header.sh_type != SHT_PROGBITS || !header.sh_size)
            continue;
        const char *name = elf_strptr(o->elf, names, header.sh_name);
        if (name && (!strcmp(name, ".debug_info") || !strcmp(name, ".zdebug_info")))
            return true;
    }
    return false;
}
