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

/* As execvp: along PATH unless there is a slash. 0 with a heap string, or -errno. */
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

/* Allocators linked in under names of their own: jemalloc as its authors or Rust build it, mimalloc, tcmalloc,
 * others. */
static const char *allocator_function(const char *name)
{
    static const char *const names[] = {"malloc",    "je_malloc", "_rjem_malloc",   "_rjem_je_malloc",
                                        "mi_malloc", "tc_malloc", "rpmalloc",       "sn_malloc",
                                        "nedmalloc", "dlmalloc",  "scalable_malloc"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (!strcmp(name, names[i]))
            return names[i];
    return NULL;
}

static const char *find_allocator(Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh)
{
    Elf_Data *data = elf_getdata(scn, NULL);
    size_t n = sh->sh_entsize ? sh->sh_size / sh->sh_entsize : 0;
    const char *found = NULL;
    for (size_t i = 0; data && i < n && !found; i++) {
        GElf_Sym sym;
        const char *name = gelf_getsym(data, (int)i, &sym) ? elf_strptr(elf, sh->sh_link, sym.st_name) : NULL;
        if (name && sym.st_shndx != SHN_UNDEF && GELF_ST_TYPE(sym.st_info) == STT_FUNC &&
            (GELF_ST_BIND(sym.st_info) != STB_LOCAL || strcmp(name, "malloc")))
            found = allocator_function(name);
    }
    return found;
}

/* The name of an allocator's function that the program defines, or NULL. */
static const char *own_malloc(int fd)
{
    const char *found = NULL;
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    if (elf && elf_kind(elf) == ELF_K_ELF)
        for (Elf_Scn *scn = NULL; !found && (scn = elf_nextscn(elf, scn));) {
            GElf_Shdr sh;
            if (gelf_getshdr(scn, &sh) && (sh.sh_type == SHT_DYNSYM || sh.sh_type == SHT_SYMTAB))
                found = find_allocator(elf, scn, &sh);
        }
    elf_end(elf);
    return found;
}

/* The interpreter of a script, as a heap string; NULL: not a script. */
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

static const char *advice(enum carrier why)
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
    struct preload_check check;
    enum carrier why = preload_check_judge_file(&check, fd);
    if (why != PRELOAD_CHECK_YES && why != PRELOAD_CHECK_OWN_MALLOC) {
        const char *what = advice(why);
        error_set(e, EINVAL, "%s %s%s%s", path, preload_check_reason(why),
                  *what == ':' || *what == ',' ? "" : " ", what);
        return PROGRAM_REFUSED;
    }
    const char *allocator = own_malloc(fd);
    if (!allocator)
        return PROGRAM_OK;
    error_set(
        e, EINVAL,
        "%s defines %s itself: what it allocates there goes past the agent and is not in this recording",
        path, allocator);
    return PROGRAM_OWN_MALLOC;
}

int program_check(const char *cmd, char **path, enum program_kind *kind, struct error *e)
{
    char *at = NULL;
    int bad = find_program(cmd, &at);
    if (bad == -ENOENT)
        return error_set(e, ENOENT, "%s: command not found", cmd);
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
