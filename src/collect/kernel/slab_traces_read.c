/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/slab_traces.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/read_file.h"
#include "collect/kernel/private_mount.h"

#define TEXT_BYTES_MAX (64u << 20)

static void read_cache(struct slab_traces *t, int folder, const char *cache)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    buf_printf(&path, "%s/alloc_traces", cache);
    if (!file_read_at(folder, buf_str(&path), TEXT_BYTES_MAX, &text))
        slab_traces_parse(t, cache, buf_str(&text));
    buf_release(&path);
    buf_release(&text);
}

int slab_traces_read(struct slab_traces *t, struct error *e)
{
    *t = (struct slab_traces){.all = {0}};
    int root = private_mount("debugfs");
    if (root < 0)
        return error_set(e, -root, "cannot mount debugfs: %s", strerror(-root));
    int folder = openat(root, "slab", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = folder < 0 ? NULL : fdopendir(folder);
    int bad = d ? 0 : error_set(e, errno, "debugfs has no folder slab: %s", strerror(errno));
    for (struct dirent *entry = d ? readdir(d) : NULL; entry; entry = readdir(d))
        if (entry->d_name[0] != '.')
            read_cache(t, folder, entry->d_name);
    if (d)
        closedir(d);
    close(root);
    return bad;
}
