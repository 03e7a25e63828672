/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/slabinfo.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/read_file.h"

#define TEXT_BYTES_MAX (16u << 20)

static void read_links(DIR *dir, struct slab_links *links)
{
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct slab_link link;
        size_t len = strlen(entry->d_name);
        ssize_t to = readlinkat(dirfd(dir), entry->d_name, link.unique, sizeof(link.unique) - 1);
        if (to <= 0 || len >= sizeof(link.name))
            continue;
        link.unique[to] = '\0';
        memcpy(link.name, entry->d_name, len + 1);
        *vec_push(links) = link;
    }
}

static uint64_t object_bytes(int folder, const char *name)
{
    char path[SLAB_NAME_BYTES + 16], text[24] = "";
    snprintf(path, sizeof(path), "%s/object_size", name);
    int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t len = read(fd, text, sizeof(text) - 1);
    close(fd);
    return len > 0 ? strtoull(text, NULL, 10) : 0;
}

/* Reads aliases and sizes from /sys/kernel/slab. It is missing in kernels without SLUB or sysfs: then there are no
 * aliases, and sizes are not known. */
static void read_sysfs(struct slab_caches *s, const char *root)
{
    struct buf path = BUF_INIT;
    struct slab_links links = {0};
    buf_printf(&path, "%s/sys/kernel/slab", root);
    DIR *dir = opendir(buf_str(&path));
    buf_release(&path);
    if (!dir)
        return;
    read_links(dir, &links);
    slab_add_links(s, &links);
    vec_each (struct slab_cache, c, &s->all)
        c->object_bytes = object_bytes(dirfd(dir), c->name);
    vec_release(&links);
    closedir(dir);
}

int slab_read(struct slab_caches *s, const char *root, struct error *e)
{
    struct buf text = BUF_INIT, path = BUF_INIT;
    *s = (struct slab_caches){.bad_lines = 0};
    buf_printf(&path, "%s/proc/slabinfo", root);
    int bad = file_read(buf_str(&path), TEXT_BYTES_MAX, &text);
    if (bad == -EACCES || bad == -EPERM)
        bad = error_set(e, EACCES, "%s: only root may read it", buf_str(&path));
    else if (bad)
        error_set(e, -bad, "%s: %s", buf_str(&path), strerror(-bad));
    else if ((bad = slab_parse(s, buf_str(&text))))
        error_set(e, -bad, "%s: it does not begin with \"" SLAB_HEAD "\"", buf_str(&path));
    else
        read_sysfs(s, root);
    buf_release(&text);
    buf_release(&path);
    return bad;
}
