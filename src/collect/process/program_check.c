/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/process/program_check.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "wire/preload_check.h"

#define INTERPRETERS_MAX 4

static bool is_executable(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* Finds a program like execvp(3): in PATH, unless `cmd` contains a slash. Returns 0 with *path, which the caller frees,
 * or -errno. */
static int find_program(const char *cmd, char **path)
{
    struct stat st;
    if (strchr(cmd, '/')) {
        if (stat(cmd, &st))
            return -errno;
        if (!is_executable(cmd))
            return -EACCES;
        *path = mem_strdup(cmd);
        return 0;
    }
    const char *dirs = getenv("PATH");
    bool denied = false;
    for (const char *p = dirs ? dirs : "/bin:/usr/bin"; *cmd; p++) {
        size_t len = strcspn(p, ":");
        struct buf b = BUF_INIT;
        buf_add(&b, len ? p : ".", len ? len : 1);
        buf_printf(&b, "/%s", cmd);
        if (is_executable(buf_str(&b))) {
            *path = buf_detach(&b);
            return 0;
        }
        denied = denied || !access(buf_str(&b), F_OK);
        buf_release(&b);
        p += len;
        if (!*p)
            break;
    }
    return denied ? -EACCES : -ENOENT;
}

/* Returns the interpreter of a script, which the caller frees; NULL if the file is not a script. */
static char *script_interpreter(int fd)
{
    char line[256];
    ssize_t n = pread(fd, line, sizeof(line) - 1, 0);
    if (n < 3 || line[0] != '#' || line[1] != '!')
        return NULL;
    line[n] = '\0';
    char *p = line + 2 + strspn(line + 2, " \t");
    p[strcspn(p, " \t\r\n")] = '\0';
    return *p ? mem_strdup(p) : NULL;
}

const char *program_check_reason(enum preload_check_result why)
{
    switch (why) {
    case PRELOAD_CHECK_PRIVILEGED:
        return "gains privileges when it starts";
    case PRELOAD_CHECK_FOREIGN:
        return "is for another architecture, word size or C library";
    case PRELOAD_CHECK_STATIC:
        return "is statically linked";
    case PRELOAD_CHECK_SANITIZER:
        return "is built with a sanitizer";
    case PRELOAD_CHECK_NO_AGENT:
        return "runs where the agent cannot be found";
    case PRELOAD_CHECK_HIDDEN:
        return "keeps its ledger where only root can read it";
    case PRELOAD_CHECK_OWN_MALLOC:
        return "has an allocator of its own";
    case PRELOAD_CHECK_FILE_SIZE:
        return "may not make a file of a ledger's size (RLIMIT_FSIZE)";
    case PRELOAD_CHECK_NO_ROOM:
        return "found no room for a ledger on its tmpfs";
    case PRELOAD_CHECK_NO_MEMORY:
        return "found no memory for a ledger";
    case PRELOAD_CHECK_NO_LEDGER:
        return "could not make a ledger";
    default:
        return "can be observed";
    }
}

/* The Go linker's section with the versions of the toolchain and of the modules: all its programs have it. */
static bool has_go_section(Elf *elf)
{
    size_t names = 0;
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    if (!elf || elf_kind(elf) != ELF_K_ELF || elf_getshdrstrndx(elf, &names))
        return false;
    while ((section = elf_nextscn(elf, section))) {
        const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (name && !strcmp(name, ".go.buildinfo"))
            return true;
    }
    return false;
}

bool program_is_go(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    elf_version(EV_CURRENT);
    Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
    bool is = has_go_section(elf);
    elf_end(elf);
    if (fd >= 0)
        close(fd);
    return is;
}

static const char *advice(enum preload_check_result why)
{
    switch (why) {
    case PRELOAD_CHECK_PRIVILEGED:
        return "(set-uid, set-gid or file capabilities): the loader then ignores LD_PRELOAD; run it as the "
               "user "
               "it changes to";
    case PRELOAD_CHECK_FOREIGN:
        return "than this allium's agent: nothing of it could be observed";
    case PRELOAD_CHECK_STATIC:
        return ": no library can be preloaded into it; link it dynamically to observe its heap";
    case PRELOAD_CHECK_SANITIZER:
        return ", which replaces malloc itself and refuses a preloaded one; observe a build without it";
    default:
        return "";
    }
}

static enum program_kind judge(int fd, const char *path, struct error *e)
{
    struct preload_check check = {.strings_max = UINT64_MAX};
    enum preload_check_result why = preload_check_judge_file(&check, fd);
    if (why != PRELOAD_CHECK_YES && why != PRELOAD_CHECK_OWN_MALLOC) {
        const char *what =
            why == PRELOAD_CHECK_STATIC && program_is_go(path)
                ? ", and written in Go, whose heap is not malloc's: use its own profiles, runtime/pprof"
                : advice(why);
        error_set(e, EINVAL, "%s %s%s%s", path, program_check_reason(why),
                  *what == ':' || *what == ',' ? "" : " ", what);
        return PROGRAM_REFUSED;
    }
    if (why == PRELOAD_CHECK_YES)
        return PROGRAM_OK;
    error_set(e, EINVAL,
              "%s defines %s itself: its allocations bypass the agent and are missing from this recording",
              path, check.allocator);
    return PROGRAM_OWN_MALLOC;
}

/* Returns whether `cmd` is the name of an executable file in the current directory. */
static bool is_program_here(const char *cmd)
{
    struct stat st;
    return *cmd && !strchr(cmd, '/') && !stat(cmd, &st) && S_ISREG(st.st_mode) && !access(cmd, X_OK);
}

int program_check(const char *cmd, char **path, enum program_kind *kind, struct error *e)
{
    char *at = NULL;
    int bad = find_program(cmd, &at);
    if (bad == -ENOENT)
        return error_set(e, ENOENT, "%s: command not found%s%s", cmd,
                         is_program_here(cmd) ? "; there is one in this directory: use ./" : "",
                         is_program_here(cmd) ? cmd : "");
    if (bad)
        return error_set(e, EACCES, "%s: cannot be executed: %s", cmd,
                         strerror(bad == -EACCES ? EACCES : -bad));
    if (path)
        *path = mem_strdup(at);
    *kind = PROGRAM_OK;
    for (int depth = 0; depth < INTERPRETERS_MAX; depth++) {
        int fd = open(at, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            break; /* executable but not readable: the kernel may still start it */
        char *next = script_interpreter(fd);
        if (!next)
            *kind = judge(fd, at, e);
        close(fd);
        if (!next)
            break;
        free(at);
        at = next;
    }
    free(at);
    return 0;
}
