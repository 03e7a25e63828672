/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/hooks/resolve.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sigsafe/gnu_hash.h"
#include "base/sigsafe/str.h"
#include "unwind/module.h"

#define VERSYM_HIDDEN 0x8000u

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

struct symbols {
    const ElfW(Sym) * table;
    const char *strings;
    const uint32_t *gnu_hash, *sysv_hash;
    const uint16_t *versions;
};

/* Returns the address in an entry of .dynamic: glibc relocates entries in place, unless they are read-only (vdso). */
static uintptr_t relocated(const struct link_map *m, uintptr_t value)
{
    return value < m->l_addr ? m->l_addr + value : value;
}

static bool read_dynamic(const struct link_map *m, struct symbols *s)
{
    *s = (struct symbols){0};
    for (const ElfW(Dyn) *d = m->l_ld; d && d->d_tag != DT_NULL; d++) {
        const void *at = (const void *)relocated(m, d->d_un.d_ptr);
        if (d->d_tag == DT_SYMTAB)
            s->table = at;
        else if (d->d_tag == DT_STRTAB)
            s->strings = at;
        else if (d->d_tag == DT_GNU_HASH)
            s->gnu_hash = at;
        else if (d->d_tag == DT_HASH)
            s->sysv_hash = at;
        else if (d->d_tag == DT_VERSYM)
            s->versions = at;
    }
    return s->table && s->strings && (s->gnu_hash || s->sysv_hash);
}

static void *definition(const struct link_map *m, const struct symbols *s, uint32_t i, const char *name)
{
    const ElfW(Sym) *sym = &s->table[i];
    unsigned type = ELF64_ST_TYPE(sym->st_info);
    const char *have = s->strings + sym->st_name;
    if (sym->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC) ||
        text_length(have) != text_length(name) || !text_starts(have, name) ||
        (s->versions && s->versions[i] & VERSYM_HIDDEN))
        return NULL;
    void *at = (void *)(m->l_addr + sym->st_value);
    return type == STT_GNU_IFUNC ? ((void *(*)(void))at)() : at;
}

static void *look_up_gnu(const struct link_map *m, const struct symbols *s, const char *name)
{
    const uint32_t *h = s->gnu_hash, hash = gnu_hash(name);
    uint32_t buckets = h[0], first = h[1], bloom_words = h[2];
    const ElfW(Addr) *bloom = (const ElfW(Addr) *)(h + 4);
    const uint32_t *bucket = (const uint32_t *)(bloom + bloom_words), *chain = bucket + buckets;
    if (!buckets || !bloom_words || !gnu_hash_may_have(bloom[hash / 64 % bloom_words], hash, h[3]))
        return NULL;
    for (uint32_t i = bucket[hash % buckets]; i >= first && i; i++) {
        if ((chain[i - first] | 1) == (hash | 1)) {
            void *at = definition(m, s, i, name);
            if (at)
                return at;
        }
        if (chain[i - first] & 1)
            break;
    }
    return NULL;
}

void *resolve_in(const struct link_map *m, const char *name)
{
    struct symbols s;
    if (!read_dynamic(m, &s))
        return NULL;
    if (s.gnu_hash)
        return look_up_gnu(m, &s, name);
    for (uint32_t i = 0; i < s.sysv_hash[1]; i++) {
        void *at = definition(m, &s, i, name);
        if (at)
            return at;
    }
    return NULL;
}

static bool is_own(const struct link_map *m)
{
    return m->l_addr == (uintptr_t)&__ehdr_start;
}

/* Returns true, too, if dlmopen() has loaded the agent into a namespace of its own: the agent is not in this list. */
bool resolve_is_late(void)
{
    const struct link_map *m = _r_debug.r_map;
    while (m && !is_own(m) && !resolve_in(m, "gnu_get_libc_version"))
        m = m->l_next;
    return !m || !is_own(m);
}

void *resolve_next(const char *name, const struct link_map **where)
{
    bool behind = resolve_is_late();
    for (const struct link_map *m = _r_debug.r_map; m; m = m->l_next) {
        if (is_own(m)) {
            behind = true;
            continue;
        }
        void *at = behind ? resolve_in(m, name) : NULL;
        if (at) {
            if (where)
                *where = m;
            return at;
        }
    }
    return NULL;
}

bool resolve_before(const char *name)
{
    const struct link_map *m = _r_debug.r_map;
    while (m && !is_own(m) && !resolve_in(m, name))
        m = m->l_next;
    return m && !is_own(m);
}

const char *resolve_own_path(void)
{
    for (const struct link_map *m = _r_debug.r_map; m; m = m->l_next)
        if (is_own(m))
            return m->l_name[0] == '/' ? m->l_name : NULL;
    return NULL;
}

void *resolve_startup(const char *name)
{
    bool behind = false;
    for (const struct link_map *m = _r_debug.r_map; m && module_came_with_program(m); m = m->l_next) {
        void *at = behind ? resolve_in(m, name) : NULL;
        if (at)
            return at;
        behind = behind || is_own(m);
    }
    return NULL;
}
