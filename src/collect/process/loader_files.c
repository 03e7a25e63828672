/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/process/loader_files.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gelf.h>

#include "base/buf.h"
#include "base/read_file.h"

#define LIST_MOST (1u << 20)

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

void loader_files_release(struct loader_files *f)
{
    vec_each (struct loader_file, file, f) {
        free(file->name);
        free(file->path);
    }
    vec_release(f);
}
