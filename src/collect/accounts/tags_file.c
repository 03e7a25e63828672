/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/accounts/tags_file.h"

#include <ar.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int open_regular(const char *path)
{
    struct stat st;
    if (stat(path, &st)) /* before open(2), which may have effects on devices and pipes */
        return -1;
    if (S_ISREG(st.st_mode))
        return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    return -1;
}

bool tags_file_is_binary(const char *path)
{
    unsigned char begin[SARMAG];
    int fd = open_regular(path);
    ssize_t got = fd < 0 ? 0 : pread(fd, begin, sizeof(begin), 0);
    bool is = (got >= SELFMAG && !memcmp(begin, ELFMAG, SELFMAG)) ||
              (got == SARMAG && !memcmp(begin, ARMAG, SARMAG));
    if (fd >= 0)
        close(fd);
    return is;
}

int tags_file_open(struct tags_file *f, const char *path, struct error *e)
{
    int fd = open_regular(path);
    *f = (struct tags_file){0};
    if (fd < 0)
        return error_set(e, errno, "%s: %s", path, strerror(errno));
    elf_version(EV_CURRENT);
    int bad = tags_file_read(f, elf_begin(fd, ELF_C_READ, NULL), path, e);
    close(fd); /* libelf has copied the parts that were read */
    return bad;
}
