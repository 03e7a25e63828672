/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/unobserved_list.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "base/sigsafe/clock_ns.h"
#include "base/sigsafe/str.h"
#include "base/sigsafe/syscall.h"

#define LINE_BYTES       (UNOBSERVED_PATH_BYTES + 8)
#define MARK_PATH_BYTES  160
#define MARK_BYTES       (MARK_PATH_BYTES + 60)
#define MARK_LABEL_BYTES 24 /* for the recorder's name and a slash; a memfd's name has at most 249 bytes */

/* Writes a line with the end of the path, and '?' for each control character. Returns the length of the line. */
static size_t make_line(char line[static LINE_BYTES], enum preload_check_result why, const char *path,
                        bool started)
{
    size_t length = text_length(path), n = text_copy(line, 2, started ? "" : "-");
    n += text_from_number(line + n, why, 10, 1);
    if (length >= UNOBSERVED_PATH_BYTES)
        path += length - UNOBSERVED_PATH_BYTES + 1;
    line[n++] = ' ';
    for (; *path; path++)
        line[n++] = (unsigned char)*path < ' ' ? '?' : *path;
    line[n++] = '\n';
    return n;
}

/* Writes the name of a mark into `name`. If the path is too long, the name has only the end of the path. */
static void name_mark(char name[static MARK_BYTES], uint64_t id, enum preload_check_result why,
                      const char *path, bool started)
{
    size_t length = text_length(path), n = text_from_number(name, (uint64_t)sys_call(SYS_getpid, 0), 10, 1);
    name[n++] = '-';
    n += text_from_number(name + n, id, 16, 16);
    n += text_copy(name + n, 3, started ? "-" : "--");
    n += text_from_number(name + n, why, 10, 1);
    name[n++] = ' ';
    if (length > MARK_PATH_BYTES)
        path += length - MARK_PATH_BYTES;
    for (; *path; path++)
        name[n++] = *path == '/' ? '\\' : (unsigned char)*path < ' ' || *path == '\\' ? '?' : *path;
    text_copy(name + n, MARK_BYTES - n, UNOBSERVED_SUFFIX);
}

/* Maps a page of an empty memfd, so that /proc/PID/maps shows the recorder's name and `name`. Not in fork children. */
static bool map_mark(const struct ledger_config *config, const char *name)
{
    char label[MARK_BYTES + MARK_LABEL_BYTES];
    const char *recorder = ledger_recorder_name(config->dir);
    size_t n = *recorder ? text_copy(label, MARK_LABEL_BYTES - 1, recorder + 1) : 0;
    if (n)
        label[n++] = '/';
    text_copy(label + n, sizeof(label) - n, name);
    long fd = sys_call(SYS_memfd_create, label, MFD_CLOEXEC), page;
    if (sys_failed(fd))
        return false;
    page = sys_call(SYS_mmap, 0, LEDGER_PAGE_BYTES, PROT_NONE, MAP_SHARED, fd, 0);
    sys_call(SYS_close, fd);
    return !sys_failed(page) && !sys_call(SYS_madvise, page, LEDGER_PAGE_BYTES, MADV_DONTFORK);
}

static bool make_mark(long dir, const char *name)
{
    const int how = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    long fd = sys_call(SYS_openat, dir, name, how, 0600);
    return !sys_failed(fd) && !sys_call(SYS_close, fd);
}

bool unobserved_mark(const struct ledger_config *config, uint64_t id, enum preload_check_result why,
                     const char *path, bool started)
{
    char name[MARK_BYTES > LEDGER_PATH_BYTES ? MARK_BYTES : LEDGER_PATH_BYTES];
    long dir = ledger_open_dir(config, name, true);
    name_mark(name, id, why, path, started);
    bool made = !sys_failed(dir) && make_mark(dir, name);
    if (!sys_failed(dir))
        sys_call(SYS_close, dir);
    return made || map_mark(config, name);
}

/* Returns true if a write that makes a file `bytes` long would raise SIGXFSZ. */
static bool passes_limit(uint64_t bytes)
{
    struct rlimit fsize;
    return !sys_call(SYS_getrlimit, RLIMIT_FSIZE, &fsize) && bytes > fsize.rlim_cur;
}

bool unobserved_note(const struct ledger_config *config, enum preload_check_result why, const char *path,
                     bool started)
{
    const int how = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    char line[LINE_BYTES]; /* holds first the directory's path, then the line: the stack may be small */
    _Static_assert(LINE_BYTES >= LEDGER_PATH_BYTES, "the name of a folder fits into a line");
    struct stat st;
    long dir = ledger_open_dir(config, line, false);
    if (sys_failed(dir))
        return false;
    long fd = sys_call(SYS_openat, dir, UNOBSERVED_FILE, how, 0600), written = -1;
    if (!sys_failed(fd) && !sys_call(SYS_fstat, fd, &st) && S_ISREG(st.st_mode) &&
        st.st_size < UNOBSERVED_BYTES_MAX) {
        size_t n = make_line(line, why, st.st_size < UNOBSERVED_NAMED_BYTES ? path : "", started);
        if (!passes_limit((uint64_t)st.st_size + n))
            written = sys_call(SYS_write, fd, line, n);
        if (written <= 0) {
            name_mark(line, clock_ns(CLOCK_MONOTONIC), why, path, started);
            written = make_mark(dir, line);
        }
    }
    if (!sys_failed(fd))
        sys_call(SYS_close, fd);
    sys_call(SYS_close, dir);
    return written > 0;
}
