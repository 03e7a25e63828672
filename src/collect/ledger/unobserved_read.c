/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/ledger/unobserved_read.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "collect/ledger/ledger_folder.h"
#include "wire/unobserved_list.h"

static void take_line(char *line, unobserved_fn take, void *arg)
{
    char *end;
    bool started = *line != '-';
    long why = strtol(line + !started, &end, 10);
    if (end != line && *end == ' ' && why > PRELOAD_CHECK_YES && why < PRELOAD_CHECK_KINDS)
        take(arg, (enum preload_check_result)why, end + 1, started ? 1 : -1);
}

void unobserved_read(const char *dir, uint64_t *offset, unobserved_fn take, void *arg)
{
    char text[4096 + 1];
    struct buf path = BUF_INIT;
    buf_printf(&path, "%s/" UNOBSERVED_FILE, dir);
    int fd = ledger_file_open(buf_str(&path), O_RDONLY);
    buf_release(&path);
    for (ssize_t n; fd >= 0 && (n = pread(fd, text, sizeof(text) - 1, (off_t)*offset)) > 0;) {
        text[n] = '\0';
        char *line = text, *end;
        for (; (end = memchr(line, '\n', (size_t)(text + n - line))); line = end + 1) {
            *end = '\0';
            take_line(line, take, arg);
        }
        if (line == text && n < (ssize_t)sizeof(text) - 1)
            break; /* the last line is being written */
        *offset += line == text ? (uint64_t)n : (uint64_t)(line - text);
    }
    if (fd >= 0)
        close(fd);
}

char *unobserved_parse_mark(char *name, int *why, uint64_t *id)
{
    int pid, end = 0;
    size_t length = strlen(name), tail = strlen(UNOBSERVED_SUFFIX);
    if (length < tail || strcmp(name + length - tail, UNOBSERVED_SUFFIX) != 0 ||
        sscanf(name, "%9d-%16" SCNx64 "-%3d%n", &pid, id, why, &end) != 3 || !end || name[end] != ' ' ||
        !*why || abs(*why) >= PRELOAD_CHECK_KINDS)
        return NULL;
    name[length - tail] = '\0';
    for (char *c = name + end + 1; *c; c++)
        *c = *c == '\\' ? '/' : *c;
    return name + end + 1;
}

void unobserved_take_marks(const char *dir, unobserved_fn take, void *arg)
{
    int fd = ledger_folder_open(dir), why;
    uint64_t id;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        char *name = mem_strdup(entry->d_name), *program = unobserved_parse_mark(name, &why, &id);
        if (program && !unlinkat(dirfd(d), entry->d_name, 0))
            take(arg, (enum preload_check_result)abs(why), program, why < 0 ? -1 : 1);
        free(name);
    }
    if (d)
        closedir(d);
}
