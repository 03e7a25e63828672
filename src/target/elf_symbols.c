/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/elf_symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>

#include "base/sigsafe/str.h"
#include "base/sigsafe/syscall.h"
#include "target/vm_reserve.h"

#define AT_A_TIME     32u /* records of a table that are read at a time */
#define SECTIONS_MOST 4096u
#define SYMBOLS_MOST  (1u << 20)

static bool read_at(int fd, void *to, uint64_t bytes, uint64_t at)
{
    return at <= INT64_MAX && (uint64_t)sys_call(SYS_pread64, fd, to, bytes, at) == bytes;
}

/* Returns whether the open file has the ELF header and program headers that are mapped at `image`; fills in *h. */
static bool is_same(int fd, const void *image, Elf64_Ehdr *h)
{
    char headers[AT_A_TIME * sizeof(Elf64_Phdr)];
    uint64_t bytes;
    if (!read_at(fd, h, sizeof(*h), 0) || __builtin_memcmp(h, image, sizeof(*h)) ||
        __builtin_memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_phoff != sizeof(*h) || h->e_phnum > AT_A_TIME)
        return false;
    bytes = h->e_phnum * sizeof(Elf64_Phdr);
    return read_at(fd, headers, bytes, h->e_phoff) &&
           !__builtin_memcmp(headers, (const char *)image + h->e_phoff, bytes);
}

/* Reads the headers of .symtab, or .dynsym if there is no .symtab, and of the section with the names of its symbols. */
static bool find_table(int fd, const Elf64_Ehdr *h, Elf64_Shdr *symbols, Elf64_Shdr *strings)
{
    Elf64_Shdr s;
    bool found = false;
    if (h->e_shentsize != sizeof(s))
        return false;
    for (uint64_t i = 0; i < h->e_shnum && i < SECTIONS_MOST; i++) {
        if (!read_at(fd, &s, sizeof(s), h->e_shoff + i * sizeof(s)))
            return false;
        if (s.sh_type != SHT_SYMTAB && (s.sh_type != SHT_DYNSYM || found))
            continue;
        *symbols = s;
        found = true;
        if (s.sh_type == SHT_SYMTAB)
            break;
    }
    return found && symbols->sh_link < h->e_shnum &&
           read_at(fd, strings, sizeof(*strings), h->e_shoff + symbols->sh_link * sizeof(*strings));
}

static bool is_at(const Elf64_Sym *s, uint64_t address)
{
    return ELF64_ST_TYPE(s->st_info) == STT_FUNC && s->st_shndx != SHN_UNDEF && s->st_value <= address &&
           address - s->st_value < s->st_size;
}

/* Returns the offset of the function's name in the table of strings; 0: no symbol was found for the address. */
static uint32_t find_symbol(int fd, const Elf64_Shdr *table, uint64_t address)
{
    Elf64_Sym symbols[AT_A_TIME];
    uint64_t count = table->sh_size / sizeof(*symbols);
    for (uint64_t at = 0; at < count && at < SYMBOLS_MOST; at += AT_A_TIME) {
        uint64_t n = count - at < AT_A_TIME ? count - at : AT_A_TIME;
        if (!read_at(fd, symbols, n * sizeof(*symbols), table->sh_offset + at * sizeof(*symbols)))
            return 0;
        for (uint64_t i = 0; i < n; i++)
            if (is_at(&symbols[i], address))
                return symbols[i].st_name;
    }
    return 0;
}

static void read_name(int fd, const Elf64_Shdr *strings, uint32_t at,
                      char name[static ELF_SYMBOLS_NAME_BYTES])
{
    uint64_t n = at < strings->sh_size ? strings->sh_size - at : 0;
    n = n < ELF_SYMBOLS_NAME_BYTES ? n : ELF_SYMBOLS_NAME_BYTES;
    name[ELF_SYMBOLS_NAME_BYTES - 1] = '\0';
    if (!n || !read_at(fd, name, n, strings->sh_offset + at))
        n = 0;
    for (uint64_t i = 0; i < n; i++)
        if (!name[i])
            return;
    *name = '\0';
}

void elf_symbols_path(const char *name, char path[static ELF_SYMBOLS_PATH_BYTES])
{
    long n = 0;
    *path = '\0';
    if (*name && text_length(name) < ELF_SYMBOLS_PATH_BYTES)
        text_copy(path, ELF_SYMBOLS_PATH_BYTES, name);
    else if (!*name && vm_reserve_may_call())
        n = sys_call(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, ELF_SYMBOLS_PATH_BYTES - 1);
    if (!*name)
        path[sys_failed(n) ? 0 : n] = '\0';
}

void elf_symbols_name(const char *path, const void *image, uint64_t address,
                      char name[static ELF_SYMBOLS_NAME_BYTES])
{
    Elf64_Ehdr h;
    Elf64_Shdr symbols = {0}, strings;
    *name = '\0';
    if (!*path || !vm_reserve_may_call())
        return;
    long fd = sys_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (sys_failed(fd))
        return;
    if (is_same((int)fd, image, &h) && find_table((int)fd, &h, &symbols, &strings)) {
        uint32_t at = find_symbol((int)fd, &symbols, address);
        if (at)
            read_name((int)fd, &strings, at, name);
    }
    sys_call(SYS_close, fd);
}
