/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/preload_check.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/sigsafe/compiler.h"
#include "base/sigsafe/gnu_hash.h"
#include "base/sigsafe/str.h"
#include "base/sigsafe/syscall.h"

#define INTERPRETERS_MAX 4 /* a script may have a script as its interpreter */
#define SEGMENTS_MAX     64u
#define DYNAMIC_MAX      1024u
#define CHAIN_MAX        4096u
#define NAME_BYTES       32  /* more than the longest name in `allocators` has */
#define TRIALS_MAX       32u /* at most this many strings are looked up in a symbol table */
#define SECTIONS_MAX     256u

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#define OUR_LOADER  "ld-linux-x86-64.so.2"
#endif

/* Reads `size` bytes, at most a block, at file offset `at`. Returns how many: fewer at the end of the file, 0 on error.
 * Keeps the last blocks, so most callers, which read tables record by record, read without a system call. */
static ONE_COPY size_t read_part(struct preload_check *f, void *out, size_t size, uint64_t at)
{
    struct preload_check_block *b = f->blocks;
    while (b < f->blocks + PRELOAD_CHECK_BLOCKS &&
           (at < b->from || b->length < size || at - b->from > b->length - size))
        b++;
    if (b == f->blocks + PRELOAD_CHECK_BLOCKS) {
        b = &f->blocks[f->next_block++ % PRELOAD_CHECK_BLOCKS];
        long n = sys_call(SYS_pread64, f->fd, b->bytes, sizeof(b->bytes), at);
        b->from = at;
        b->length = sys_failed(n) ? 0 : (size_t)n;
    }
    size_t left = b->length - (size_t)(at - b->from), n = size < left ? size : left;
    __builtin_memcpy(out, b->bytes + (at - b->from), n);
    return n;
}

static ONE_COPY bool read_at(struct preload_check *f, void *out, size_t bytes, uint64_t at)
{
    return read_part(f, out, bytes, at) == bytes;
}

/* Reads up to `size` - 1 bytes at the file offset `at` as text. Returns false if there are none. */
static ONE_COPY bool read_text(struct preload_check *f, char *out, size_t size, uint64_t at)
{
    size_t n = read_part(f, out, size - 1, at);
    out[n] = '\0';
    return n > 0;
}

static ONE_COPY bool read_segment(struct preload_check *f, unsigned i, Elf64_Phdr *p)
{
    return i < f->header.e_phnum && i < SEGMENTS_MAX && f->header.e_phentsize == sizeof(*p) &&
           read_at(f, p, sizeof(*p), f->header.e_phoff + (uint64_t)i * sizeof(*p));
}

/* Returns the file offset of a virtual address of the ELF file; 0: no segment of the file contains the address. */
static ONE_COPY uint64_t offset_of(struct preload_check *f, uint64_t address)
{
    Elf64_Phdr p;
    for (unsigned i = 0; read_segment(f, i, &p); i++)
        if (p.p_type == PT_LOAD && address >= p.p_vaddr && address - p.p_vaddr < p.p_filesz)
            return p.p_offset + (address - p.p_vaddr);
    return 0;
}

static void read_segments(struct preload_check *f)
{
    Elf64_Phdr p;
    for (unsigned i = 0; read_segment(f, i, &p); i++) {
        if (p.p_type == PT_DYNAMIC) {
            f->dynamic_at = p.p_offset;
            f->dynamic_bytes = p.p_filesz;
        } else if (p.p_type == PT_INTERP) {
            uint64_t skipped =
                p.p_filesz > PRELOAD_CHECK_NAME_BYTES ? p.p_filesz - PRELOAD_CHECK_NAME_BYTES : 0;
            read_text(f, f->interpreter, PRELOAD_CHECK_NAME_BYTES, p.p_offset + skipped);
        }
    }
}

static ONE_COPY bool read_dynamic(struct preload_check *f, unsigned i, Elf64_Dyn *d)
{
    return i < DYNAMIC_MAX && (i + 1) * sizeof(*d) <= f->dynamic_bytes &&
           read_at(f, d, sizeof(*d), f->dynamic_at + i * sizeof(*d)) && d->d_tag != DT_NULL;
}

static void read_tables(struct preload_check *f)
{
    Elf64_Dyn d;
    for (unsigned i = 0; read_dynamic(f, i, &d); i++) {
        if (d.d_tag == DT_STRTAB)
            f->strings = offset_of(f, d.d_un.d_ptr);
        else if (d.d_tag == DT_SYMTAB)
            f->symbols = offset_of(f, d.d_un.d_ptr);
        else if (d.d_tag == DT_GNU_HASH)
            f->gnu_hash = offset_of(f, d.d_un.d_ptr);
    }
    if (!f->symbols || !f->strings || !f->gnu_hash || !read_at(f, &f->hash, sizeof(f->hash), f->gnu_hash) ||
        !f->hash.bloom_words)
        f->hash.buckets = 0;
}

/* Returns whether the program needs the shared library of a sanitizer, as gcc links it. */
static bool needs_sanitizer(struct preload_check *f)
{
    static const char *const libraries[] = {"libasan.so", "libtsan.so", "liblsan.so", "libhwasan.so"};
    Elf64_Dyn d;
    for (unsigned i = 0; f->strings && read_dynamic(f, i, &d); i++) {
        if (d.d_tag != DT_NEEDED || !read_text(f, f->text, sizeof(f->text), f->strings + d.d_un.d_val))
            continue;
        for (size_t k = 0; k < sizeof(libraries) / sizeof(*libraries); k++)
            if (text_starts(f->text, libraries[k]))
                return true;
        if (text_starts(f->text, "libclang_rt.") && text_find(f->text, "san"))
            return true;
    }
    return false;
}

static bool has_name(struct preload_check *f, uint32_t symbol, const char *name)
{
    Elf64_Sym s;
    return read_at(f, &s, sizeof(s), f->symbols + (uint64_t)symbol * sizeof(s)) && s.st_shndx != SHN_UNDEF &&
           read_text(f, f->text, sizeof(f->text), f->strings + s.st_name) &&
           text_length(f->text) == text_length(name) && text_starts(f->text, name);
}

/* Returns whether the program defines and exports the symbol. Looks it up in DT_GNU_HASH, as the loader does, because
 * some programs export hundreds of thousands of symbols. */
static ONE_COPY bool defines(struct preload_check *f, const char *name)
{
    uint32_t bucket, link, hash = gnu_hash(name);
    uint64_t word, bloom = f->gnu_hash + sizeof(f->hash);
    if (!f->hash.buckets || !read_at(f, &word, sizeof(word), bloom + hash / 64 % f->hash.bloom_words * 8) ||
        !gnu_hash_may_have(word, hash, f->hash.bloom_shift))
        return false;
    uint64_t buckets = bloom + f->hash.bloom_words * 8ul, chains = buckets + f->hash.buckets * 4ul;
    if (!read_at(f, &bucket, 4, buckets + hash % f->hash.buckets * 4ul) || bucket < f->hash.first)
        return false;
    for (uint32_t i = bucket, n = 0; n < CHAIN_MAX && i >= f->hash.first; i++, n++) {
        if (!read_at(f, &link, 4, chains + (uint64_t)(i - f->hash.first) * 4))
            return false;
        if ((link | 1) == (hash | 1) && has_name(f, i, name))
            return true;
        if (link & 1)
            return false;
    }
    return false;
}

/* Returns the first of `count` names that the program defines and exports, or NULL. */
static const char *find_exported(struct preload_check *f, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (defines(f, names[i]))
            return names[i];
    return NULL;
}

/* clang links the runtime of its sanitizers into the program and exports the functions of the runtime. */
static const char *const sanitizers[] = {"__asan_init", "__tsan_init", "__msan_init", "__lsan_init",
                                         "__hwasan_init"};

/* Allocator functions that programs define: malloc(), jemalloc's (with its own and with Rust's prefixes), others. */
static const char *const allocators[] = {"malloc",    "je_malloc", "_rjem_malloc",   "_rjem_je_malloc",
                                         "mi_malloc", "tc_malloc", "rpmalloc",       "sn_malloc",
                                         "nedmalloc", "dlmalloc",  "scalable_malloc"};

#define ALLOCATORS (sizeof(allocators) / sizeof(*allocators))

/* Reads the part of a section from its byte `at` on into f->piece. Returns its length; 0: the end, or an error. */
static size_t read_piece(struct preload_check *f, const Elf64_Shdr *of, uint64_t at)
{
    uint64_t left = at < of->sh_size ? of->sh_size - at : 0;
    size_t n = left < sizeof(f->piece) ? left : sizeof(f->piece);
    return sys_call(SYS_pread64, f->fd, &f->piece, n, of->sh_offset + at) == (long)n ? n : 0;
}

/* Whether the table defines a function, global unless `may_be_static`, whose name is at `name` in the strings. */
static bool table_defines(struct preload_check *f, const Elf64_Shdr *table, uint64_t name, bool may_be_static)
{
    const Elf64_Sym *s = f->piece.symbols;
    for (uint64_t at = 0, n; (n = read_piece(f, table, at)); at += n)
        for (size_t i = 0; i < n / sizeof(*s); i++)
            if (s[i].st_name == name && s[i].st_shndx && ELF64_ST_TYPE(s[i].st_info) == STT_FUNC &&
                (may_be_static || ELF64_ST_BIND(s[i].st_info) != STB_LOCAL))
                return true;
    return false;
}

/* Returns an allocator function that `table` defines, or NULL. Ignores a static malloc(): it serves one file. */
static const char *find_in_table(struct preload_check *f, const Elf64_Shdr *table, const Elf64_Shdr *strings)
{
    const char *text = f->piece.text;
    unsigned trials = 0;
    for (uint64_t at = 0, n; (n = read_piece(f, strings, at)); at += sizeof(f->piece) - NAME_BYTES)
        for (size_t end = 1; end < n; end++)
            for (size_t i = text[end] || text[end - 1] != 'c' ? ALLOCATORS : 0; i < ALLOCATORS; i++) {
                size_t length = text_length(allocators[i]);
                if (end < length || !text_starts(text + end - length, allocators[i]))
                    continue;
                if (table_defines(f, table, at + end - length, i > 0))
                    return allocators[i];
                if (++trials == TRIALS_MAX || read_piece(f, strings, at) != n)
                    return NULL;
            }
    return NULL;
}

static bool read_section(struct preload_check *f, unsigned i, Elf64_Shdr *s)
{
    return i < f->header.e_shnum && i < SECTIONS_MAX && f->header.e_shentsize == sizeof(*s) &&
           read_at(f, s, sizeof(*s), f->header.e_shoff + (uint64_t)i * sizeof(*s));
}

/* Returns an allocator function in the program's .symtab; NULL: none, no .symtab, or more than f->strings_max bytes. */
static const char *find_in_symbols(struct preload_check *f)
{
    Elf64_Shdr table, strings;
    for (unsigned i = 0; read_section(f, i, &table); i++)
        if (table.sh_type == SHT_SYMTAB && read_section(f, table.sh_link, &strings))
            return strings.sh_size <= f->strings_max ? find_in_table(f, &table, &strings) : NULL;
    return NULL;
}

static bool gains_privilege(struct preload_check *f)
{
    uid_t uid = (uid_t)sys_call(SYS_geteuid, 0);
    if (((f->st.st_mode & S_ISUID) && f->st.st_uid != uid) ||
        ((f->st.st_mode & S_ISGID) && (f->st.st_mode & S_IXGRP) &&
         f->st.st_gid != (gid_t)sys_call(SYS_getegid, 0)))
        return true;
    return uid &&
           !sys_failed(sys_call(SYS_fgetxattr, f->fd, "security.capability", f->text, sizeof(f->text)));
}

static bool loader_is_ours(const char *interpreter)
{
    size_t length = text_length(interpreter), ours = sizeof(OUR_LOADER) - 1;
    return length >= ours && text_starts(interpreter + length - ours, OUR_LOADER);
}

/* Checks the open file f->fd. If the file is a script, sets f->line to its beginning; else sets f->line to "". */
static ONE_COPY enum preload_check_result judge(struct preload_check *f)
{
    f->line[0] = f->interpreter[0] = '\0';
    for (size_t i = 0; i < PRELOAD_CHECK_BLOCKS; i++)
        f->blocks[i].length = 0;
    f->hash.buckets = 0;
    f->dynamic_at = f->dynamic_bytes = f->strings = f->symbols = f->gnu_hash = 0;
    if (sys_failed(sys_call(SYS_fstat, f->fd, &f->st)) || !S_ISREG(f->st.st_mode))
        return PRELOAD_CHECK_YES;
    if (read_text(f, f->line, sizeof(f->line), 0) && text_starts(f->line, "#!"))
        return PRELOAD_CHECK_YES;
    f->line[0] = '\0';
    if (!read_at(f, &f->header, sizeof(f->header), 0) ||
        !text_starts((const char *)f->header.e_ident, ELFMAG))
        return PRELOAD_CHECK_YES;
    if (gains_privilege(f))
        return PRELOAD_CHECK_PRIVILEGED;
    if (f->header.e_ident[EI_CLASS] != ELFCLASS64 || f->header.e_machine != OUR_MACHINE)
        return PRELOAD_CHECK_FOREIGN;
    read_segments(f);
    if (!f->interpreter[0])
        return PRELOAD_CHECK_STATIC;
    if (!loader_is_ours(f->interpreter))
        return PRELOAD_CHECK_FOREIGN;
    read_tables(f);
    if (needs_sanitizer(f) || find_exported(f, sanitizers, sizeof(sanitizers) / sizeof(*sanitizers)))
        return PRELOAD_CHECK_SANITIZER;
    /* If the program defines malloc, the linker exports malloc, because libc refers to it. */
    f->allocator = find_exported(f, allocators, ALLOCATORS) ?: find_in_symbols(f);
    return f->allocator ? PRELOAD_CHECK_OWN_MALLOC : PRELOAD_CHECK_YES;
}

/* Returns the interpreter's path in the first line of a script, and cuts `line` behind it: "/usr/bin/env". */
static const char *program_of(char *line)
{
    char *from = line + 2, *to;
    while (*from == ' ' || *from == '\t')
        from++;
    for (to = from; *to && *to != ' ' && *to != '\t' && *to != '\n' && *to != '\r';)
        to++;
    *to = '\0';
    return from;
}

enum preload_check_result preload_check_judge_file(struct preload_check *c, int fd)
{
    c->fd = fd;
    enum preload_check_result found = judge(c);
    return c->line[0] ? preload_check_judge(c, AT_FDCWD, program_of(c->line)) : found;
}

enum preload_check_result preload_check_judge(struct preload_check *c, int dir_fd, const char *path)
{
    enum preload_check_result found = PRELOAD_CHECK_YES;
    for (int n = 0; n < INTERPRETERS_MAX; n++) {
        /* stat() before open(): opening a FIFO would wait for its other end */
        if (sys_failed(sys_call(SYS_newfstatat, dir_fd, path, &c->st, 0)) || !S_ISREG(c->st.st_mode))
            return PRELOAD_CHECK_YES;
        long fd = sys_call(SYS_openat, dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (sys_failed(fd))
            return PRELOAD_CHECK_YES; /* for example, executable but not readable */
        c->fd = (int)fd;
        found = judge(c);
        sys_call(SYS_close, fd);
        if (!c->line[0])
            return found;
        path = program_of(c->line);
        dir_fd = AT_FDCWD;
    }
    return found;
}
