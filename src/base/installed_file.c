/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/installed_file.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"

/* Returns the path of the file in the folder, without "..", if it exists and can be read; else NULL. */
static char *find_in(const char *folder, const char *name)
{
    struct buf b = BUF_INIT;
    buf_printf(&b, "%s/%s", folder, name);
    char *path = !access(buf_str(&b), R_OK) ? realpath(buf_str(&b), NULL) : NULL;
    buf_release(&b);
    return path;
}

char *installed_file_find(const char *name, const char *relative, const char *absolute)
{
    char self[PATH_MAX], *path = NULL;
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (len > 0) {
        self[len] = '\0';
        *strrchr(self, '/') = '\0';
        struct buf folder = BUF_INIT;
        buf_printf(&folder, "%s/%s", self, relative);
        path = find_in(self, name);
        if (!path)
            path = find_in(buf_str(&folder), name);
        buf_release(&folder);
    }
    return path ? path : find_in(absolute, name);
}
