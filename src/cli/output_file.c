/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

FILE *output_file_open(const char *path, bool force, struct error *e)
{
    struct stat st;
    bool special = !stat(path, &st) && !S_ISREG(st.st_mode);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | (force || special ? 0 : O_EXCL), 0600);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file)
        return file;
    if (fd >= 0)
        close(fd);
    if (errno == EEXIST)
        error_set(e, EEXIST, "%s exists; use --force or another name", path);
    else
        error_set(e, errno, "%s: %s", path, strerror(errno));
    return NULL;
}
