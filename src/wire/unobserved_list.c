/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/unobserved_list.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/sigsafe/str.h"
#include "base/sigsafe/syscall.h"

#define LINE_BYTES (UNOBSERVED_PATH_BYTES + 8)

/* Makes the line, with '?' for each control character of the path. */
static size_t make_line(char line[static LINE_BYTES], enum carrier why, const char *path, bool started)
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

bool unobserved_note(const struct ledger_config *config, enum carrier why, const char *path, bool started)
{
    const int how = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    char line[LINE_BYTES]; /* at first the folder's name: the stack may be small */
    _Static_assert(LINE_BYTES >= LEDGER_PATH_BYTES, "the name of a folder fits into a line");
    struct stat st;
    long dir = ledger_open_dir(config, line, false);
    if (sys_failed(dir))
        return false;
    long fd = sys_call(SYS_openat, dir, UNOBSERVED_FILE, how, 0600);
    sys_call(SYS_close, dir);
    if (sys_failed(fd))
        return false;
    long written = -1;
    if (!sys_call(SYS_fstat, fd, &st) && S_ISREG(st.st_mode) && st.st_size < UNOBSERVED_BYTES_MAX) {
        size_t n = make_line(line, why, st.st_size < UNOBSERVED_NAMED_BYTES ? path : "", started);
        written = sys_call(SYS_write, fd, line, n);
    }
    sys_call(SYS_close, fd);
    return written > 0;
}
