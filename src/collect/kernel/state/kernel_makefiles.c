/* SPDX-License-Identifier: BSD-2-Clause */
/* The Makefiles of a whole tree, and the objects that were built in it. */
#include "collect/kernel/state/kernel_makefiles.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/read_file.h"
#include "symbol/elf_file.h"

#define MAKEFILE_BYTES_MAX (1u << 20)
#define DEPTH_MAX          16

/* Called for the names of a folder, which ends with a slash, or is "". */
typedef void (*visit)(void *arg, int fd, const char *folder, const char *name);

/* Links are not followed: the tree has links that lead out of it, or back up. */
static void walk(int fd, const char *folder, int depth, visit each, void *arg)
{
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (const struct dirent *d; (d = readdir(dir));) {
        struct buf below = BUF_INIT;
        if (*d->d_name == '.')
            continue;
        each(arg, dirfd(dir), folder, d->d_name);
        buf_printf(&below, "%s%s/", folder, d->d_name);
        const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
        if (depth < DEPTH_MAX && (d->d_type == DT_DIR || d->d_type == DT_UNKNOWN))
            walk(openat(dirfd(dir), d->d_name, flags), buf_str(&below), depth + 1, each, arg);
        buf_release(&below);
    }
    closedir(dir);
}

/* ---- Makefiles ---- */

struct reading {
    struct advice_input *in;
    const struct kernel_config *config;
    size_t n;
};

/* Kbuild is read in place of a Makefile beside it. */
static void read_makefile(void *arg, int fd, const char *folder, const char *name)
{
    struct reading *r = arg;
    struct buf text = BUF_INIT;
    const bool is_kbuild = !strcmp(name, "Kbuild");
    if (!is_kbuild && (strcmp(name, "Makefile") != 0 || !faccessat(fd, "Kbuild", F_OK, 0)))
        return;
    if (!file_read_at(fd, name, MAKEFILE_BYTES_MAX, &text)) {
        makefile_parse(r->in, r->config, folder, buf_str(&text));
        r->n++;
    }
    buf_release(&text);
}

/* ---- objects ---- */

struct sizes {
    const char *source;
    uint64_t bytes;
};

/* The sections that are loaded and stay: those for the boot alone are freed after it. */
static uint64_t size_of_object(const char *path)
{
    struct symbol_object *o;
    size_t names;
    uint64_t bytes = 0;
    if (symbol_object_open("", path, &o))
        return 0;
    if (!elf_getshdrstrndx(o->elf, &names))
        for (Elf_Scn *s = NULL; (s = elf_nextscn(o->elf, s));) {
            GElf_Shdr h;
            const char *name = gelf_getshdr(s, &h) ? elf_strptr(o->elf, names, h.sh_name) : NULL;
            if (name && h.sh_flags & SHF_ALLOC && h.sh_size <= UINT64_C(1) << 32 &&
                strncmp(name, ".init", 5) && strncmp(name, ".exit", 5) && strncmp(name, ".discard", 8))
                bytes += h.sh_size;
        }
    symbol_object_free(o);
    return bytes;
}

/* "fs/ext4/super.c" has its object in fs/ext4/super.o; objects without a source are made of others. */
static void add_object(struct sizes *s, const char *source_file)
{
    struct buf path = BUF_INIT;
    buf_printf(&path, "%s/%.*s.o", s->source, (int)(strlen(source_file) - 2), source_file);
    s->bytes += size_of_object(buf_str(&path));
    buf_release(&path);
}

static void visit_source(void *arg, int fd, const char *folder, const char *name)
{
    struct buf file = BUF_INIT;
    const size_t len = strlen(name);
    (void)fd;
    if (len < 3 || (strcmp(name + len - 2, ".c") != 0 && strcmp(name + len - 2, ".S") != 0))
        return;
    buf_printf(&file, "%s%s", folder, name);
    add_object(arg, buf_str(&file));
    buf_release(&file);
}

/* A file below a folder that the option brings, too, counts once. */
static bool is_within_another(const struct advice_option *o, const char *path)
{
    vec_each (char *const, other, &o->paths) {
        const size_t len = strlen(*other);
        if (*other != path && (*other)[len - 1] == '/' && !strncmp(path, *other, len))
            return true;
    }
    return false;
}

static void measure_option(struct advice_option *o, const char *source)
{
    struct sizes s = {.source = source};
    vec_each (char *const, path, &o->paths) {
        struct buf folder = BUF_INIT;
        if (is_within_another(o, *path))
            continue;
        buf_printf(&folder, "%s/%s", source, *path);
        if ((*path)[strlen(*path) - 1] == '/')
            walk(open(buf_str(&folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC), *path, 0, visit_source, &s);
        else
            add_object(&s, *path);
        buf_release(&folder);
    }
    o->text_bytes = s.bytes;
}

static bool brings_any(const struct advice_input *in, const struct advice_option *o)
{
    vec_each (const struct advice_call, c, &in->calls)
        if (c->file && c->live_bytes && advice_option_brings(o, c->file))
            return true;
    return false;
}

int kernel_makefiles_read(struct advice_input *in, const struct kernel_config *c, const char *source,
                          struct error *e)
{
    struct reading r = {in, c, 0};
    const int fd = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_set(e, errno, "cannot open %s: %s", source, strerror(errno));
    walk(fd, "", 0, read_makefile, &r);
    if (!r.n)
        return error_set(e, ENOENT, "%s has no Makefile: give the folder of the kernel's source", source);
    in->has_source = true;
    vec_each (struct advice_option, o, &in->options)
        if (brings_any(in, o))
            measure_option(o, source);
    return 0;
}
