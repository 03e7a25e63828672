/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/trace/cut_packet.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/read_file.h"

/* A file with a line for each closed packet: the name of its stream. Readers of CTF ignore files with a leading dot. */
#define NOTES     ".cut"
#define NOTES_MAX (1u << 20)

void cut_packet_lock(int stream)
{
    flock(stream, LOCK_EX | LOCK_NB);
}

static bool is_noted(int folder, const char *name)
{
    struct buf text = BUF_INIT;
    bool found = false;
    if (!file_read_at(folder, NOTES, NOTES_MAX, &text))
        for (const char *line = buf_str(&text), *end; !found && (end = strchr(line, '\n')); line = end + 1)
            found = (size_t)(end - line) == strlen(name) && !strncmp(line, name, strlen(name));
    buf_release(&text);
    return found;
}

static bool note(int folder, const char *name)
{
    char line[256];
    const size_t length = strlen(name);
    if (is_noted(folder, name))
        return true;
    const int fd =
        openat(folder, NOTES, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0 || length + 1 > sizeof(line)) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    memcpy(line, name, length);
    line[length] = '\n';
    const bool noted = write(fd, line, length + 1) == (ssize_t)(length + 1);
    return !close(fd) && noted;
}

/* Cuts the file first: if this process is killed before it writes the head, the packet is still not whole. */
static void end_stream(int fd, uint64_t at, const struct ctf_packet *head)
{
    if (!ftruncate(fd, (off_t)(at + (head ? head->packet_bits / 8 : 0))) && head &&
        pwrite(fd, head, sizeof(*head), (off_t)at) != sizeof(*head))
        return; /* the next reader tries again */
}

bool cut_packet_close(int folder, const char *name, uint64_t size, uint64_t at, const struct ctf_packet *head)
{
    struct stat st;
    const bool is_new = !is_noted(folder, name); /* else it could not be closed before */
    const int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return is_new;
    if (!flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
        (uint64_t)st.st_size == size && note(folder, name))
        end_stream(fd, at, head);
    close(fd);
    return is_new;
}

uint64_t cut_packet_closed(int folder)
{
    struct buf text = BUF_INIT;
    uint64_t lines = 0;
    const int bad = file_read_at(folder, NOTES, NOTES_MAX, &text);
    for (size_t i = 0; !bad && i < text.len; i++)
        lines += text.data[i] == '\n';
    buf_release(&text);
    return bad == -EACCES ? 1 : lines; /* another user has made the file: there is at least one */
}
