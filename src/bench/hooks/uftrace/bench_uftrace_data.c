/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the records of uftrace. Each has 16 bytes: the time, and a word with its type in the lowest two bits, a flag
 * for arguments, and a fixed number of three bits. A record of type 2 has the number of those that are lost in place
 * of the address, the upper 48 bits. A buffer in shared memory begins with its length, and a word of flags.
 */
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/hooks/uftrace/bench_uftrace.h"

#define RECORD_BYTES  16u
#define TYPE_MASK     3u
#define TYPE_LOST     2u
#define TYPE_EVENT    3u
#define HAS_ARGUMENTS 4u
#define MAGIC_AT      3u
#define MAGIC_MASK    7u
#define MAGIC         5u
#define ADDRESS_AT    16u

#define BUFFER_HEADER 16u
#define IN_USE        4u /* a flag: records are being added, and none is in the file yet */
#define FILES_MOST    1024u
#define CHUNK_BYTES   (128u << 10)

size_t bench_uftrace_count(struct bench_uftrace_counts *c, const void *records, size_t bytes)
{
    size_t at = 0;
    for (; bytes - at >= RECORD_BYTES; at += RECORD_BYTES) {
        uint64_t word;
        memcpy(&word, (const char *)records + at + sizeof(word), sizeof(word));
        const unsigned type = word & TYPE_MASK;
        if ((word >> MAGIC_AT & MAGIC_MASK) != MAGIC || type == TYPE_EVENT || word & HAS_ARGUMENTS)
            c->is_odd = true;
        else if (type == TYPE_LOST)
            c->lost += word >> ADDRESS_AT;
        else
            c->records++;
    }
    return at;
}

/* Of each file of the folder, in the order of their names: until where it has been counted. */
static struct {
    char name[32];
    off_t at;
} files[FILES_MOST];
static struct bench_uftrace_counts in_files;

static char chunk[CHUNK_BYTES + BUFFER_HEADER];

static void read_file(const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    size_t i = 0;
    while (i < FILES_MOST && *files[i].name && strcmp(files[i].name, name) != 0)
        i++;
    const int fd = i < FILES_MOST ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    snprintf(files[i].name, sizeof(files[i].name), "%s", name);
    for (size_t used = 1; used;) {
        const ssize_t n = pread(fd, chunk, CHUNK_BYTES, files[i].at);
        used = n > 0 ? bench_uftrace_count(&in_files, chunk, (size_t)n) : 0;
        files[i].at += (off_t)used;
    }
    close(fd);
}

static void read_buffer(struct bench_uftrace_counts *c, const char *path)
{
    uint32_t header[2];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, chunk, sizeof(chunk));
    if (fd >= 0)
        close(fd);
    if (n < (ssize_t)BUFFER_HEADER)
        return;
    memcpy(header, chunk, sizeof(header));
    const size_t room = (size_t)n - BUFFER_HEADER, bytes = header[0] < room ? header[0] : room;
    if (header[1] & IN_USE)
        bench_uftrace_count(c, chunk + BUFFER_HEADER, bytes);
}

struct bench_uftrace_counts bench_uftrace_read(const char *folder)
{
    char pattern[256];
    glob_t found;
    snprintf(pattern, sizeof(pattern), "%s/[0-9]*.dat", folder);
    if (!glob(pattern, 0, NULL, &found)) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            read_file(found.gl_pathv[i]);
        globfree(&found);
    }
    struct bench_uftrace_counts c = in_files;
    if (!glob("/dev/shm/uftrace-*-[0-9]*", 0, NULL, &found)) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            read_buffer(&c, found.gl_pathv[i]);
        globfree(&found);
    }
    return c;
}
