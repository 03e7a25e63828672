/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/gzip_file.h"

#include <errno.h>
#include <zlib.h>

/* zlib leaves errno as the system call that failed has set it; where none did, it had no memory. */
static void explain(void)
{
    if (!errno)
        errno = ENOMEM;
}

static ssize_t write_some(void *gzip, const char *bytes, size_t len)
{
    errno = 0;
    size_t written = gzfwrite(bytes, 1, len, gzip);
    if (written < len)
        explain();
    return (ssize_t)written;
}

static int close_file(void *gzip)
{
    errno = 0;
    if (gzclose(gzip) == Z_OK)
        return 0;
    explain();
    return -1;
}

FILE *gzip_file_open(const char *path)
{
    errno = 0;
    gzFile gzip = gzopen(path, "wbe");
    if (!gzip) {
        explain();
        return NULL;
    }
    FILE *file = fopencookie(gzip, "w", (cookie_io_functions_t){.write = write_some, .close = close_file});
    if (!file) {
        int error = errno;
        gzclose(gzip);
        errno = error;
    }
    return file;
}
