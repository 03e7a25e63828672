/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/process/loader_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gelf.h>

#include "base/buf.h"
#include "base/read_file.h"

#define LIST_MOST (1u << 20)
#define MAPS_MOST (64u << 20)

extern char **environ;

/* Returns the loader that the program names, which the caller frees; NULL: none. */
static char *loader_of(const char *program)
{
    const int fd = open(program, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    char *found = NULL;
    elf_version(EV_CURRENT);
    Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
    if (elf && !elf_getphdrnum(elf, &n))
        for (size_t i = 0; i < n && !found; i++) {
            GElf_Phdr ph;
            if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_INTERP || ph.p_filesz < 2)
                continue;
            const Elf_Data *text = elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, ph.p_filesz, ELF_T_BYTE);
            if (text && text->d_size && !((const char *)text->d_buf)[text->d_size - 1])
                found = mem_strdup(text->d_buf);
        }
    elf_end(elf);
    if (fd >= 0)
        close(fd);
    return found;
}

/* "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f...)"; without a file there is no arrow, or no slash. */
static void take_line(char *line, struct loader_files *out)
{
    char *arrow = strstr(line, " => "), *end = strrchr(line, '(');
    if (!arrow || arrow[4] != '/' || !end || end < arrow + 6)
        return;
    line += strspn(line, " \t");
    *arrow = '\0';
    end[-1] = '\0';
    *vec_push(out) = (struct loader_file){mem_strdup(line), mem_strdup(arrow + 4)};
}

static int run_loader(char *const argv[], struct buf *text)
{
    posix_spawn_file_actions_t actions;
    int ends[2], status = 0;
    pid_t pid;
    if (pipe2(ends, O_CLOEXEC))
        return -errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int bad = -posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (!bad) {
        bad = file_read_open(ends[0], LIST_MOST, text);
        close(ends[0]);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
        return bad ? bad : WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EIO;
    }
    close(ends[0]);
    return bad;
}

int loader_files_read(const char *program, const char *also, struct loader_files *out)
{
    char *loader = loader_of(program), *rest;
    struct buf text = BUF_INIT;
    if (!loader)
        return -ENOEXEC;
    char *argv[8], **next = argv;
    *next++ = loader;
    if (also) {
        *next++ = "--preload";
        *next++ = (char *)(uintptr_t)also;
    }
    *next++ = "--list";
    *next++ = (char *)(uintptr_t)program;
    *next = NULL;
    const int bad = run_loader(argv, &text);
    char *lines = buf_detach(&text);
    for (char *line = bad ? NULL : strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        take_line(line, out);
    free(lines);
    free(loader);
    return bad;
}

#define DELETED " (deleted)"

static bool is_same(const char *a, const char *b)
{
    struct stat x, y;
    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/*
 * Returns a path by which allium can open the file behind `link`, a link of /proc. Process `pid` sees the file at
 * `path`; if it has another root or other mounts, allium may find another file there. The link always leads to it.
 */
static char *path_of(pid_t pid, const char *link, const char *path)
{
    struct buf inside = BUF_INIT;
    buf_printf(&inside, "/proc/%d/root%s", (int)pid, path);
    const char *found = is_same(path, link)               ? path
                        : is_same(buf_str(&inside), link) ? buf_str(&inside)
                                                          : link;
    char *copy = mem_strdup(found);
    buf_release(&inside);
    return copy;
}

/* "7f3c1000-7f3c2000 r-xp 00001000 08:01 1234   /usr/lib/x86_64-linux-gnu/libc.so.6" */
static void take_mapping(pid_t pid, char *line, struct loader_files *out)
{
    char rights[5] = "", link[96];
    unsigned long start, end;
    struct stat st;
    int at = 0;
    if (sscanf(line, "%lx-%lx %4s %*x %*s %*u %n", &start, &end, rights, &at) != 3 || rights[2] != 'x' ||
        line[at] != '/')
        return;
    snprintf(link, sizeof(link), "/proc/%d/map_files/%lx-%lx", (int)pid, start, end);
    const size_t len = strlen(line + at), suffix = strlen(DELETED);
    char *path;
    if (len > suffix && !strcmp(line + at + len - suffix, DELETED))
        line[at + (int)(len - suffix)] = '\0';
    bool known = stat(link, &st) || !S_ISREG(st.st_mode);
    vec_each (const struct loader_file, file, out)
        known |= is_same(file->path, link);
    path = known ? NULL : path_of(pid, link, line + at);
    if (path)
        *vec_push(out) = (struct loader_file){mem_strdup(line + at), path};
}

int loader_files_of_process(pid_t pid, struct loader_files *out)
{
    char path[64], *rest;
    struct buf text = BUF_INIT;
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    const int bad = file_read(path, MAPS_MOST, &text);
    char *lines = buf_detach(&text);
    for (char *line = bad ? NULL : strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        take_mapping(pid, line, out);
    free(lines);
    return bad;
}

char *loader_files_program(pid_t pid)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
    const ssize_t n = readlink(link, path, sizeof(path) - 1);
    if (n < 0)
        return NULL;
    path[n] = '\0';
    return path_of(pid, link, path);
}

void loader_files_release(struct loader_files *f)
{
    vec_each (struct loader_file, file, f) {
        free(file->name);
        free(file->path);
    }
    vec_release(f);
}
