/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "collect/kernel/state/boot_log.h"

#define RECORD_BYTES 8193 /* the kernel's own limit, and a NUL */
#define LOG_MOST     (1u << 20)

int boot_log_read(const char *path, struct buf *out)
{
    char record[RECORD_BYTES];
    struct buf all = BUF_INIT;
    const size_t before = out->len;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    while (all.len <
           LOG_MOST) { /* the device gives a record for each read(); a file, as tests have it, its bytes */
        const ssize_t n = read(fd, record, sizeof(record));
        if (n > 0)
            buf_add(&all, record, (size_t)n);
        else if (n == 0 ||
                 (errno != EPIPE && errno != EINTR)) /* EPIPE: the record was overwritten meanwhile */
            break;
    }
    close(fd);
    boot_log_add(out, buf_str(&all));
    buf_release(&all);
    return out->len > before ? 0 : -ENODATA;
}
