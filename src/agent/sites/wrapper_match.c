/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/sites/wrapper_match.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <sys/mman.h>

#include "agent/process.h"
#include "agent/sites/demangle.h"
#include "base/sigsafe/pattern.h"
#include "base/sigsafe/str.h"
#include "base/sigsafe/syscall.h"
#include "unwind/module.h"

#define PATTERNS_MOST 16384u
/* most bytes of a symbol table, and of its names; a module whose file has more is treated as if it had no wrappers */
#define SYMBOLS_MOST (256ull << 20)
#define NAME_BYTES   256u
#define BEGINNINGS   1024u
#define ID_BYTES     64u

static char shipped[] =
#include "wrappers_shipped.inc"
    ;

struct pattern {
    const char *text;
    uint32_t next; /* number, + 1, of the previous pattern with the same index in `latest`; 0: none */
    bool no;       /* '!': functions with these names are not wrappers */
};

static struct pattern *patterns;
static uint32_t n_patterns;
/*
 * By hash of a pattern's first three characters: the number, + 1, of the last such pattern; 0: none. So most symbols of
 * a module are compared with few patterns, or none. The last element is for patterns that have *, ? or \ among the
 * first three characters, or have fewer than three.
 */
static uint32_t latest[BEGINNINGS + 1];

/* Maps zeroed memory; NULL: failed. `touched`: the caller will use all of it, so its pages are populated at once. */
static void *take_memory(uint64_t bytes, bool touched)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (touched ? MAP_POPULATE : 0);
    long p = sys_call(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    return sys_failed(p) ? NULL : (void *)p;
}

static uint32_t beginning(const char *text)
{
    return ((uint8_t)text[0] * 73u + (uint8_t)text[1] * 37u + (uint8_t)text[2]) % BEGINNINGS;
}

/* Returns the index in `latest` for the pattern at `text`, which ends at ';' or at the end of the text. */
static uint32_t beginning_of_pattern(const char *text)
{
    for (unsigned i = 0; i < 3; i++)
        if (!text[i] || text[i] == ';' || text[i] == '*' || text[i] == '?' || text[i] == '\\')
            return BEGINNINGS;
    return beginning(text);
}

/* Adds the patterns in the text, and replaces each ';' between them by a NUL. The text must not be freed. */
static void add_patterns(char *text)
{
    while (*text && n_patterns < PATTERNS_MOST) {
        char *start = text + (*text == '!');
        struct pattern *p = &patterns[n_patterns++];
        uint32_t *like = &latest[beginning_of_pattern(start)];
        *p = (struct pattern){.text = start, .next = *like, .no = *text == '!'};
        *like = n_patterns;
        while (*text && *text != ';')
            text++;
        if (*text)
            *text++ = '\0';
    }
}

void wrappers_begin(const char *own)
{
    size_t length = own ? text_length(own) : 0;
    char *memory = take_memory(PATTERNS_MOST * sizeof(*patterns) + length + 1, false);
    if (!memory)
        return;
    patterns = (struct pattern *)memory;
    memory += PATTERNS_MOST * sizeof(*patterns);
    add_patterns(shipped);
    text_copy(memory, length + 1, own ? own : "");
    add_patterns(memory);
}

/* Returns the number, + 1, of the first match in the list from `at` on, in which later patterns come first; 0: none. */
static uint32_t last_fit(uint32_t at, const char *name, size_t length)
{
    while (at && !pattern_glob(patterns[at - 1].text, name, length))
        at = patterns[at - 1].next;
    return at;
}

static bool is_wrapper(const char *symbol)
{
    char name[NAME_BYTES];
    const char *start = demangle_beginning(symbol);
    if (start && !latest[beginning(start)] && !latest[BEGINNINGS])
        return false;
    size_t length = demangle_name(symbol, name, sizeof(name));
    uint32_t like = length < 3 ? 0 : last_fit(latest[beginning(name)], name, length),
             any = last_fit(latest[BEGINNINGS], name, length), last = like > any ? like : any;
    return last && !patterns[last - 1].no;
}

/* The wrappers of a module: for each the first address and the end (excluded), as the module's file has them. */
struct functions {
    uint64_t count;
    struct {
        uint64_t start, end;
    } at[];
};

static const struct functions no_functions;
static const struct functions *functions[MODULE_MAX];

static bool read_at(long fd, void *to, uint64_t bytes, uint64_t offset)
{
    for (uint64_t done = 0; done < bytes;) {
        long n = sys_call(SYS_pread64, fd, (char *)to + done, bytes - done, offset + done);
        if (sys_failed(n) || !n)
            return false;
        done += (uint64_t)n;
    }
    return true;
}

/* True if the file has the build id of the loaded module, or the module has none. The file may have been replaced. */
static bool is_file_of(const struct unwind_module *m, long fd, const Elf64_Ehdr *eh)
{
    Elf64_Phdr ph;
    uint8_t id[ID_BYTES];
    uint64_t address = (uintptr_t)m->build_id - m->bias, length = m->build_id_len;
    if (!m->build_id)
        return true;
    for (unsigned i = 0; i < eh->e_phnum && length <= ID_BYTES; i++) {
        if (!read_at(fd, &ph, sizeof(ph), eh->e_phoff + i * sizeof(ph)))
            return false;
        if (ph.p_type == PT_LOAD && address - ph.p_vaddr < ph.p_filesz)
            return read_at(fd, id, length, ph.p_offset + address - ph.p_vaddr) &&
                   !__builtin_memcmp(id, m->build_id, length);
    }
    return false;
}

/* Finds .symtab, or in a stripped file .dynsym, and the section of its names. False: none, or too large. */
static bool find_symbols(long fd, const Elf64_Ehdr *eh, Elf64_Shdr *symbols, Elf64_Shdr *names)
{
    Elf64_Shdr sh;
    symbols->sh_type = SHT_NULL;
    for (unsigned i = 0; i < eh->e_shnum; i++) {
        if (!read_at(fd, &sh, sizeof(sh), eh->e_shoff + i * sizeof(sh)))
            return false;
        if (sh.sh_type == SHT_SYMTAB || (sh.sh_type == SHT_DYNSYM && symbols->sh_type == SHT_NULL))
            *symbols = sh;
    }
    return symbols->sh_type != SHT_NULL && symbols->sh_link < eh->e_shnum &&
           read_at(fd, names, sizeof(*names), eh->e_shoff + symbols->sh_link * sizeof(*names)) &&
           symbols->sh_size && symbols->sh_size <= SYMBOLS_MOST && names->sh_size &&
           names->sh_size <= SYMBOLS_MOST;
}

/* Replaces the symbols, which lie in memory from f->at on, by the addresses of those that are wrappers. */
static void select_wrappers(struct functions *f, uint64_t symbols, const char *names, uint64_t names_bytes)
{
    const Elf64_Sym *symbol = (const Elf64_Sym *)(f + 1);
    f->count = 0;
    for (uint64_t i = 0; i < symbols; i++) {
        Elf64_Sym s = symbol[i];
        if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || s.st_shndx == SHN_UNDEF || !s.st_size ||
            s.st_name >= names_bytes || !is_wrapper(names + s.st_name))
            continue;
        f->at[f->count].start = s.st_value;
        f->at[f->count++].end = s.st_value + s.st_size;
    }
}

#define PAGES(bytes) (((bytes) + LEDGER_PAGE_BYTES - 1) & ~(uint64_t)(LEDGER_PAGE_BYTES - 1))

static const struct functions *read_functions(const struct unwind_module *m, long fd)
{
    Elf64_Ehdr eh;
    Elf64_Shdr symbols, strings;
    if (!read_at(fd, &eh, sizeof(eh), 0) || __builtin_memcmp(eh.e_ident, ELFMAG, SELFMAG) ||
        eh.e_phentsize != sizeof(Elf64_Phdr) || eh.e_shentsize != sizeof(Elf64_Shdr) ||
        !is_file_of(m, fd, &eh) || !find_symbols(fd, &eh, &symbols, &strings))
        return &no_functions;
    uint64_t bytes = PAGES(sizeof(struct functions) + symbols.sh_size);
    struct functions *f = take_memory(bytes, true);
    char *names = take_memory(strings.sh_size + 1, true); /* + 1: the last name ends in a NUL */
    bool good = f && names && read_at(fd, f + 1, symbols.sh_size, symbols.sh_offset) &&
                read_at(fd, names, strings.sh_size, strings.sh_offset);
    uint64_t kept = 0;
    if (good) {
        select_wrappers(f, symbols.sh_size / sizeof(Elf64_Sym), names, strings.sh_size);
        kept = f->count ? PAGES(sizeof(*f) + f->count * sizeof(f->at[0])) : 0;
    }
    if (names)
        sys_call(SYS_munmap, names, strings.sh_size + 1);
    if (f && kept < bytes)
        sys_call(SYS_munmap, (char *)f + kept, bytes - kept);
    return kept ? f : &no_functions;
}

/* Returns the wrappers of the module. If two threads read its file at once, the slower one gives its memory back. */
static const struct functions *functions_of(uint32_t module)
{
    const struct functions *have = load_acquire(&functions[module]);
    const struct unwind_module *m = &unwind_modules.at[module];
    if (have)
        return have;
    if (!patterns || load_relaxed(&process.ledger.sealed))
        return &no_functions;
    long fd = sys_call(SYS_openat, AT_FDCWD, m->name[0] ? m->name : "/proc/self/exe",
                       O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const struct functions *found = sys_failed(fd) ? &no_functions : read_functions(m, fd);
    if (!sys_failed(fd))
        sys_call(SYS_close, fd);
    if (__atomic_compare_exchange_n(&functions[module], &have, found, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return found;
    if (found->count)
        sys_call(SYS_munmap, found, PAGES(sizeof(*found) + found->count * sizeof(found->at[0])));
    return have;
}

bool wrappers_have(uint32_t module, uintptr_t pc)
{
    const struct functions *f = functions_of(module);
    uint64_t address = pc - unwind_modules.at[module].bias;
    for (uint64_t i = 0; i < f->count; i++)
        if (address - f->at[i].start < f->at[i].end - f->at[i].start)
            return true;
    return false;
}
