/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/control.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "wire/ledger.h"

static int failed(struct error *e, const char *path, int code)
{
    if (code == ENOENT)
        return error_set(
            e, ENOENT,
            "%s is not there: the process has a ledger without a name, or one that was made when its "
            "directory was full",
            path);
    return error_set(e, code, "%s: %s", path, strerror(code));
}

static int open_page(const char *path, struct error *e)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return failed(e, path, errno);
    if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size >= (off_t)sizeof(struct ledger_control))
        return fd;
    close(fd);
    return error_set(e, EPROTO, "%s is no control page of an agent", path);
}

static int change(int fd, uint64_t clear, uint64_t set, uint64_t *now)
{
    struct ledger_control page;
    if (flock(fd, LOCK_EX) || pread(fd, &page, sizeof(page), 0) != sizeof(page))
        return -EIO;
    uint64_t magic = LEDGER_CONTROL_MAGIC, word = page.magic == magic ? page.word : 0;
    word = (word & ~clear) | set;
    /* The word last: without the magic it means nothing. */
    if (pwrite(fd, &magic, sizeof(magic), offsetof(struct ledger_control, magic)) != sizeof(magic) ||
        pwrite(fd, &word, sizeof(word), offsetof(struct ledger_control, word)) != sizeof(word))
        return -EIO;
    *now = word;
    return 0;
}

int control_change(const char *ledger_path, uint64_t clear, uint64_t set, uint64_t *now, struct error *e)
{
    struct buf path = BUF_INIT;
    uint64_t word = 0;
    buf_add(&path, ledger_path, strlen(ledger_path) - strlen(LEDGER_SUFFIX));
    buf_addstr(&path, LEDGER_CONTROL_SUFFIX);
    int fd = open_page(buf_str(&path), e);
    int bad = fd < 0 ? fd : change(fd, clear, set, &word);
    if (fd >= 0) {
        close(fd);
        if (bad)
            failed(e, buf_str(&path), -bad);
    }
    buf_release(&path);
    if (now)
        *now = word;
    return bad;
}
