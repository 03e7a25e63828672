/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/program.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

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

struct traits {
    bool elf, native, interpreter, sanitizer;
    const char *own_malloc; /* the name of an allocator's function that it defines, or NULL */
};

static bool name_is_sanitizer(const char *name)
{
    static const char *const prefixes[] = {"__asan_init", "__msan_init", "__tsan_init", "__hwasan_init",
                                           "__lsan_init"};
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
            return true;
    return false;
}

/* Allocators linked in under names of their own: jemalloc as its authors or Rust build it, mimalloc, tcmalloc, others. */
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

static void read_symbols(Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh, struct traits *t)
{
    Elf_Data *data = elf_getdata(scn, NULL);
    size_t n = sh->sh_entsize ? sh->sh_size / sh->sh_entsize : 0;
    for (size_t i = 0; data && i < n; i++) {
        GElf_Sym sym;
        const char *name = gelf_getsym(data, (int)i, &sym) ? elf_strptr(elf, sh->sh_link, sym.st_name) : NULL;
        if (!name)
            continue;
        t->sanitizer = t->sanitizer || name_is_sanitizer(name);
        if (sym.st_shndx != SHN_UNDEF && GELF_ST_TYPE(sym.st_info) == STT_FUNC && !t->own_malloc &&
            (GELF_ST_BIND(sym.st_info) != STB_LOCAL || strcmp(name, "malloc")))
            t->own_malloc = allocator_function(name);
    }
}

static void read_traits(int fd, struct traits *t)
{
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    GElf_Ehdr eh;
    size_t segments = 0;
    *t = (struct traits){0};
    if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &eh))
        goto out;
    t->elf = true;
#if defined(__x86_64__)
    t->native = eh.e_machine == EM_X86_64 && eh.e_ident[EI_CLASS] == ELFCLASS64;
#endif
    if (elf_getphdrnum(elf, &segments))
        segments = 0;
    for (size_t i = 0; i < segments; i++) {
        GElf_Phdr ph;
        if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_INTERP)
            t->interpreter = true;
    }
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
        GElf_Shdr sh;
        if (gelf_getshdr(scn, &sh) && (sh.sh_type == SHT_DYNSYM || sh.sh_type == SHT_SYMTAB))
            read_symbols(elf, scn, &sh, t);
    }
out:
    elf_end(elf);
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

static bool gains_privilege(int fd)
{
    struct stat st;
    char value[64];
    if (!fstat(fd, &st) && (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
                            ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getegid())))
        return true;
    return geteuid() && fgetxattr(fd, "security.capability", value, sizeof(value)) > 0;
}

static enum program_kind refuse(struct error *e, const char *path, const char *why)
{
    error_set(e, EINVAL, "%s %s", path, why);
    return PROGRAM_REFUSED;
}

static enum program_kind judge(int fd, const char *path, struct error *e)
{
    struct traits t;
    read_traits(fd, &t);
    if (!t.elf)
        return PROGRAM_OK; /* the kernel will say what it is */
    if (gains_privilege(fd))
        return refuse(
            e, path,
            "gains privileges when it starts (set-uid, set-gid or file capabilities): the loader then "
            "ignores LD_PRELOAD; run it as the user it changes to");
    if (!t.native)
        return refuse(
            e, path,
            "is for another architecture or word size than this allium's agent: nothing of it could "
            "be observed");
    if (!t.interpreter)
        return refuse(e, path,
                      "is statically linked: no library can be preloaded into it; link it dynamically to "
                      "observe its heap");
    if (t.sanitizer)
        return refuse(e, path,
                      "is built with a sanitizer, which replaces malloc itself and refuses a preloaded one; "
                      "observe a build without it");
    if (!t.own_malloc)
        return PROGRAM_OK;
    error_set(
        e, EINVAL,
        "%s defines %s itself: what it allocates there goes past the agent and is not in this recording",
        path, t.own_malloc);
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
