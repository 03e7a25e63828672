/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/ledger/control_write.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "collect/ledger/ledger_folder.h"
#include "collect/ledger/mapped_ledgers.h"
#include "wire/deferred_rules.h"

static int failed(struct error *e, const char *path, int code)
{
    if (code == ENOENT)
        return error_set(e, ENOENT, "%s does not exist: its directory was full when the process started",
                         path);
    return error_set(e, code, "%s: %s", path, strerror(code));
}

/* Opens the control page beside the ledger or, if no path leads to the ledger, the one that the process maps. */
static int open_named(const struct ledger_entry *ledger, const char *path)
{
    if (ledger->path)
        return ledger_file_open(path, O_RDWR);
    const struct mapped_ledgers_file *page = mapped_ledgers_control(ledger->mapped, ledger->image_id);
    return page->end ? mapped_ledgers_open(ledger->pid, page, O_RDWR) : -ENOENT;
}

/*
 * Returns whether the file is the control page of an agent. We are about to write to it, but a process may map any file
 * that it can read under such a name. The page of an agent has the size of a page (or of one with lists behind it), is
 * accessible to its owner only (unless it is a memfd), and is either empty or was written by this tool.
 */
static bool is_page(int fd, bool nameless)
{
    struct ledger_control page;
    struct stat st;
    return !fstat(fd, &st) && S_ISREG(st.st_mode) &&
           (st.st_size == LEDGER_PAGE_BYTES || st.st_size == LEDGER_CONTROL_TAG_BYTES) &&
           (nameless || !(st.st_mode & 077)) && pread(fd, &page, sizeof(page), 0) == sizeof(page) &&
           (page.magic == LEDGER_CONTROL_MAGIC || (!page.magic && !page.word));
}

static int open_page(const struct ledger_entry *ledger, const char *path, struct error *e)
{
    int fd = open_named(ledger, path);
    if (fd < 0)
        return failed(e, path, -fd);
    if (is_page(fd, !ledger->path &&
                        mapped_ledgers_nameless(mapped_ledgers_control(ledger->mapped, ledger->image_id))))
        return fd;
    close(fd);
    return error_set(e, EPROTO, "%s is not the control page of an agent", path);
}

static int change(int fd, uint64_t clear, uint64_t set, uint64_t *now)
{
    struct ledger_control page;
    if (flock(fd, LOCK_EX) || pread(fd, &page, sizeof(page), 0) != sizeof(page))
        return -EIO;
    uint64_t magic = LEDGER_CONTROL_MAGIC, word = page.magic == magic ? page.word : 0;
    word = (word & ~clear) | set;
    /* The magic is written first: without it, the word means nothing. */
    if (pwrite(fd, &magic, sizeof(magic), offsetof(struct ledger_control, magic)) != sizeof(magic) ||
        pwrite(fd, &word, sizeof(word), offsetof(struct ledger_control, word)) != sizeof(word))
        return -EIO;
    *now = word;
    return 0;
}

static void print_path(struct buf *path, const struct ledger_entry *ledger)
{
    if (ledger->path) {
        const char *point = strrchr(ledger->path, '.');
        buf_add(path, ledger->path, point ? (size_t)(point - ledger->path) : strlen(ledger->path));
        buf_addstr(path, LEDGER_CONTROL_SUFFIX);
    } else if (mapped_ledgers_control(ledger->mapped, ledger->image_id)->end) {
        buf_printf(path, "%s of process %d", mapped_ledgers_control(ledger->mapped, ledger->image_id)->path,
                   (int)ledger->pid);
    } else {
        buf_printf(path, "the control page of process %d", (int)ledger->pid);
    }
}

int control_open(const struct ledger_entry *ledger, struct error *e)
{
    struct buf path = BUF_INIT;
    print_path(&path, ledger);
    int fd = open_page(ledger, buf_str(&path), e);
    buf_release(&path);
    return fd;
}

int control_failed(const struct ledger_entry *ledger, int code, struct error *e)
{
    struct buf path = BUF_INIT;
    print_path(&path, ledger);
    failed(e, buf_str(&path), code);
    buf_release(&path);
    return -code;
}

int control_change(const struct ledger_entry *ledger, uint64_t clear, uint64_t set, uint64_t *now,
                   struct error *e)
{
    uint64_t word = 0;
    int fd = control_open(ledger, e), bad = fd < 0 ? fd : change(fd, clear, set, &word);
    if (fd >= 0) {
        close(fd);
        if (bad)
            control_failed(ledger, -bad, e);
    }
    if (now)
        *now = word;
    return bad;
}
