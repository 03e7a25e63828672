/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/slab_traces.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/read_file.h"
#include "base/sigsafe/clock_ns.h"
#include "collect/kernel/private_mount.h"

#define TEXT_BYTES_MAX (64u << 20)

/* The files of a cache, of newer kernels and older ones; those of allocations come first. */
static const struct {
    const char *name;
    bool is_freed;
} files[] = {{"alloc_traces", false}, {"alloc_calls", false}, {"free_traces", true}, {"free_calls", true}};
#define FILES  (sizeof(files) / sizeof(*files))
#define ALLOCS 2u

/* The latest time at which one of the files was written; what the kernel makes while it is read is written now. */
static void note_time(int folder, const char *path, uint64_t *written_ns)
{
    struct stat st;
    if (fstatat(folder, path, &st, 0))
        return;
    const uint64_t ns = st.st_size ? (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec
                                   : clock_ns(CLOCK_REALTIME);
    *written_ns = ns > *written_ns ? ns : *written_ns;
}

/* Returns whether the file is there. */
static bool read_one(struct slab_traces *t, int folder, const char *cache, size_t file, uint64_t *written_ns)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    buf_printf(&path, "%s/%s", cache, files[file].name);
    const bool is_there = !file_read_at(folder, buf_str(&path), TEXT_BYTES_MAX, &text);
    if (is_there) {
        slab_traces_parse(t, cache, files[file].is_freed, buf_str(&text));
        note_time(folder, buf_str(&path), written_ns);
    }
    buf_release(&path);
    buf_release(&text);
    return is_there;
}

static uint64_t read_size(int folder, const char *cache)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    buf_printf(&path, "%s/object_size", cache);
    const uint64_t bytes =
        file_read_at(folder, buf_str(&path), 64, &text) ? 0 : strtoull(buf_str(&text), NULL, 10);
    buf_release(&path);
    buf_release(&text);
    return bytes <= UINT32_MAX ? bytes : 0;
}

/* Returns whether there was one. A cache that the kernel merged into another is a link to it. */
static bool read_cache(struct slab_traces *t, int folder, const char *cache, size_t n_files,
                       uint64_t *written_ns)
{
    struct stat st;
    bool any = false;
    if (fstatat(folder, cache, &st, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(st.st_mode))
        return false;
    const size_t before = t->all.len;
    for (size_t i = 0; i < n_files; i++)
        any |= read_one(t, folder, cache, i, written_ns);
    const uint64_t bytes = t->all.len > before ? read_size(folder, cache) : 0;
    for (size_t i = before; i < t->all.len; i++)
        t->all.at[i].object_bytes = bytes;
    return any;
}

/* Closes the descriptor. Returns how many caches there were, or -errno. */
static int read_all(struct slab_traces *t, int folder, size_t n_files, uint64_t *written_ns)
{
    int n = 0;
    DIR *d = fdopendir(folder);
    if (!d)
        return -errno;
    for (struct dirent *entry = readdir(d); entry; entry = readdir(d))
        if (entry->d_name[0] != '.')
            n += read_cache(t, folder, entry->d_name, n_files, written_ns);
    closedir(d);
    return n;
}

bool slab_traces_is_folder(const char *path)
{
    bool is = false;
    DIR *d = opendir(path);
    for (struct dirent *entry = d ? readdir(d) : NULL; entry && !is; entry = readdir(d))
        for (size_t i = 0; i < FILES && entry->d_name[0] != '.' && !is; i++) {
            struct buf name = BUF_INIT;
            buf_printf(&name, "%s/%s", entry->d_name, files[i].name);
            is = !faccessat(dirfd(d), buf_str(&name), F_OK, 0);
            buf_release(&name);
        }
    if (d)
        closedir(d);
    return is;
}

int slab_traces_read_folder(struct slab_traces *t, const char *path, uint64_t *written_ns, struct error *e)
{
    *written_ns = 0;
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int n = folder < 0 ? -errno : read_all(t, folder, FILES, written_ns);
    if (n < 0)
        return error_set(e, -n, "%s: %s", path, strerror(-n));
    return n ? 0 : error_set(e, ENODATA, "%s has no file CACHE/alloc_traces that can be read", path);
}

int slab_traces_read(struct slab_traces *t, struct error *e)
{
    uint64_t ignored = 0;
    *t = (struct slab_traces){.all = {0}};
    int root = private_mount("debugfs");
    if (root < 0)
        return error_set(e, -root, "cannot mount debugfs: %s", strerror(-root));
    int folder = openat(root, "slab", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int n = folder < 0 ? -errno : read_all(t, folder, ALLOCS, &ignored);
    close(root);
    return n < 0 ? error_set(e, -n, "debugfs has no folder slab: %s", strerror(-n)) : 0;
}
