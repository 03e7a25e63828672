/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <sys/auxv.h>

#include "base/sigsafe/atomic.h"

struct module_table unwind_modules;

/* Has the layout of struct dl_find_object, which <dlfcn.h> declares since glibc 2.35. */
struct found_object {
    unsigned long long flags;
    void *map_start, *map_end;
    struct link_map *link_map;
    void *eh_frame;
    unsigned long long reserved[7];
};
extern int loader_find_object(void *pc, struct found_object *result) __asm__("_dl_find_object")
    __attribute__((weak));

/* Used if glibc has no _dl_find_object(): the modules that were loaded when module_init_late() was called. */
#define STARTUP_MAX 256
static struct found_object startup[STARTUP_MAX];
static uint32_t startup_used;

/* Computes the start of the first page and the end of the PT_LOAD segments, without the module's bias. */
static void span_segments(const ElfW(Phdr) * ph, unsigned count, uintptr_t *low, uintptr_t *high)
{
    *low = UINTPTR_MAX;
    *high = 0;
    for (unsigned i = 0; i < count; i++) {
        if (ph[i].p_type != PT_LOAD)
            continue;
        *low = ph[i].p_vaddr < *low ? ph[i].p_vaddr : *low;
        *high = ph[i].p_vaddr + ph[i].p_memsz > *high ? ph[i].p_vaddr + ph[i].p_memsz : *high;
    }
    *low &= ~(uintptr_t)4095;
}

static int add_startup(struct dl_phdr_info *info, size_t size, void *data)
{
    uintptr_t low, high;
    (void)size;
    (void)data;
    if (startup_used == STARTUP_MAX)
        return 1;
    span_segments(info->dlpi_phdr, info->dlpi_phnum, &low, &high);
    if (low < high)
        startup[startup_used++] = (struct found_object){.map_start = (void *)(info->dlpi_addr + low),
                                                        .map_end = (void *)(info->dlpi_addr + high)};
    return 0;
}

static bool is_libc(const char *name)
{
    const char *base = name;
    for (const char *c = name; *c; c++)
        if (*c == '/')
            base = c + 1;
    return base[0] == 'l' && base[1] == 'i' && base[2] == 'b' && base[3] == 'c' && base[4] == '.';
}

/* The modules that were loaded with the program, as far as module_init() knows. They are never unloaded. */
static const struct link_map *permanent[STARTUP_MAX];
static uint32_t permanent_used;

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

void module_init(void)
{
    /*
     * A preloaded library is before libc in the loader's list. If this library is behind libc, it may have been loaded
     * with dlopen(), and so may other modules in the list. Then no module is recorded.
     */
    bool preloaded = false;
    uint32_t n = 0;
    for (const struct link_map *m = _r_debug.r_map; m && n < STARTUP_MAX; m = m->l_next) {
        if (m->l_addr == (uintptr_t)&__ehdr_start)
            preloaded = true;
        else if (!preloaded && n && m->l_name && is_libc(m->l_name))
            return;
        permanent[n++] = m;
    }
    permanent_used = n;
}

bool module_came_with_program(const void *link_map)
{
    for (uint32_t i = 0; i < permanent_used; i++)
        if (permanent[i] == link_map)
            return true;
    return false;
}

static bool is_permanent(const struct link_map *map)
{
    return module_came_with_program(map) || (map && map == _r_debug.r_map); /* r_map is the executable */
}

void module_init_late(void)
{
    if (!loader_find_object && !startup_used)
        dl_iterate_phdr(add_startup, NULL);
}

static bool find_object(uintptr_t pc, struct found_object *o)
{
    if (likely(loader_find_object != NULL))
        return loader_find_object((void *)pc, o) == 0;
    for (uint32_t i = 0; i < startup_used; i++)
        if (pc - (uintptr_t)startup[i].map_start <
            (uintptr_t)startup[i].map_end - (uintptr_t)startup[i].map_start) {
            *o = startup[i];
            return true;
        }
    return false;
}

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0xff51afd7ed558ccdu;
    return h ^ h >> 33;
}

/* Returns a hash of the addresses and the build id; without a build id, of addresses, l_ld and name of the module. */
static uint64_t identify(const struct unwind_module *m)
{
    uint64_t h = mix(m->start, m->end);
    if (m->build_id) {
        for (uint32_t i = 0; i < m->build_id_len; i++)
            h = h * 31 + m->build_id[i];
        return mix(h, m->build_id_len);
    }
    const struct link_map *map = m->link_map;
    h = mix(h, (uintptr_t)m->eh_frame_hdr);
    if (!map)
        return h;
    h = mix(h, (uintptr_t)map->l_ld);
    for (const char *c = map->l_name; c && *c; c++)
        h = h * 31 + (uint8_t)*c;
    return h;
}

static void read_note(struct unwind_module *m, uintptr_t at, uintptr_t end)
{
    while (at + sizeof(ElfW(Nhdr)) <= end) {
        const ElfW(Nhdr) *n = (const void *)at;
        uintptr_t name = at + sizeof(*n);
        if (n->n_namesz > end - name)
            return;
        uintptr_t desc = name + ((n->n_namesz + 3) & ~3u);
        if (desc > end || n->n_descsz > end - desc)
            return;
        if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 && *(const uint32_t *)name == 0x554e47) {
            m->build_id = (const uint8_t *)desc;
            m->build_id_len = n->n_descsz;
            return;
        }
        at = desc + ((n->n_descsz + 3) & ~3u);
    }
}

/* Finds the part [*start, *end) that comes from the file, of the readable PT_LOAD segment at `at`. False: none. */
static bool segment_of(const struct unwind_module *m, const ElfW(Phdr) * ph, unsigned count, uintptr_t at,
                       uintptr_t *start, uintptr_t *end)
{
    for (unsigned i = 0; i < count; i++) {
        if (ph[i].p_type != PT_LOAD || !(ph[i].p_flags & PF_R))
            continue;
        *start = m->bias + ph[i].p_vaddr;
        *end = *start + ph[i].p_filesz;
        if (at >= *start && at < *end && *start >= m->start && *end <= m->end)
            return true;
    }
    return false;
}

struct headers {
    const ElfW(Phdr) * at;
    unsigned count;
    uintptr_t entry; /* e_entry of the ELF header; 0: unknown */
};

static bool has_elf_header(uintptr_t start, uintptr_t end)
{
    const ElfW(Ehdr) *eh = (const void *)start;
    return end - start >= sizeof(*eh) && *(const uint32_t *)eh->e_ident == 0x464c457f &&
           eh->e_phentsize == sizeof(ElfW(Phdr)) && eh->e_phoff + eh->e_phnum * sizeof(ElfW(Phdr)) <= 4096;
}

/*
 * Finds the program headers. If a module has gaps between its segments, _dl_find_object() reports only one segment. If
 * this segment lacks the ELF header, AT_PHDR (executable) or the header at the load address (library) is used.
 */
static bool find_headers(const struct found_object *o, struct headers *h)
{
    uintptr_t start = (uintptr_t)o->map_start, end = (uintptr_t)o->map_end;
    struct found_object first;
    if (!has_elf_header(start, end)) {
        if (!o->link_map)
            return false;
        if (!o->link_map->l_name || !o->link_map->l_name[0]) {
            h->at = (const void *)getauxval(AT_PHDR);
            h->count = (unsigned)getauxval(AT_PHNUM);
            return h->at && getauxval(AT_PHENT) == sizeof(ElfW(Phdr));
        }
        start = o->link_map->l_addr;
        if (!find_object(start, &first) || first.link_map != o->link_map ||
            !has_elf_header(start, (uintptr_t)first.map_end))
            return false;
    }
    const ElfW(Ehdr) *eh = (const void *)start;
    h->at = (const void *)(start + eh->e_phoff);
    h->count = eh->e_phnum;
    h->entry = eh->e_entry;
    return true;
}

/* Computes bias, start and end of *m from the link map and the program headers. */
static void measure(struct unwind_module *m, const struct found_object *o, const struct headers *h)
{
    uintptr_t low, high;
    span_segments(h->at, h->count, &low, &high);
    m->bias = o->link_map ? o->link_map->l_addr : (uintptr_t)o->map_start - low;
    m->start = m->bias + low;
    m->end = m->bias + high;
}

/* Fills *m from the link map and the program headers of the module. False: the program headers were not found. */
static bool describe(struct unwind_module *m, const struct found_object *o)
{
    struct headers h = {0};
    m->link_map = o->link_map;
    m->name = o->link_map && o->link_map->l_name ? o->link_map->l_name : "";
    if (!find_headers(o, &h))
        return false;
    measure(m, o, &h);
    if (m->link_map && m->link_map == _r_debug.r_map)
        m->entry = getauxval(AT_ENTRY);
    else if (m->bias == _r_debug.r_ldbase)
        m->entry = m->bias + h.entry;
    uintptr_t start, end;
    for (unsigned i = 0; i < h.count; i++) {
        uintptr_t at = m->bias + h.at[i].p_vaddr;
        if (h.at[i].p_type == PT_NOTE && !m->build_id && segment_of(m, h.at, h.count, at, &start, &end))
            read_note(m, at, at + h.at[i].p_filesz < end ? at + h.at[i].p_filesz : end);
        if (h.at[i].p_type == PT_GNU_EH_FRAME && segment_of(m, h.at, h.count, at, &start, &end)) {
            m->eh_frame_hdr = (const uint8_t *)at;
            m->rules_start = start;
            m->rules_end = end;
        }
    }
    m->identity = identify(m);
    m->permanent = is_permanent(m->link_map);
    if (m->build_id && m->build_id_len >= 8)
        __builtin_memcpy(&m->build_id_word, m->build_id, 8);
    return true;
}

static uint32_t add(const struct unwind_module *found)
{
    uint32_t used = load_acquire(&unwind_modules.used);
    for (uint32_t i = used < MODULE_MAX ? used : MODULE_MAX; i-- > 0;) {
        struct unwind_module *m = &unwind_modules.at[i];
        if (load_acquire(&m->ready) && m->start == found->start && m->identity == found->identity) {
            store_relaxed(&m->link_map,
                          found->link_map); /* the link map is another one if the library was loaded again */
            store_relaxed(&m->name, found->name);
            return i;
        }
    }
    if (used >= MODULE_MAX)
        return MODULE_NONE;
    uint32_t index = __atomic_fetch_add(&unwind_modules.used, 1, __ATOMIC_ACQ_REL);
    if (index >= MODULE_MAX)
        return MODULE_NONE;
    unwind_modules.at[index] = *found;
    store_release(&unwind_modules.at[index].ready, 1);
    return index;
}

uint32_t module_find(uintptr_t pc)
{
    struct found_object o;
    struct unwind_module m = {0};
    if (!find_object(pc, &o) || !describe(&m, &o))
        return MODULE_NONE;
    return add(&m);
}

const void *module_link_map(uintptr_t pc)
{
    struct found_object o;
    return find_object(pc, &o) ? o.link_map : NULL;
}

bool module_is_current_cold(const struct unwind_module *m, uintptr_t pc)
{
    struct found_object o;
    if (!find_object(pc, &o) || pc < m->start || pc >= m->end || (uintptr_t)o.map_start < m->start ||
        (uintptr_t)o.map_end > m->end + 4095)
        return false;
    /*
     * Another module may be loaded at this address now, so the memory at the address of m's build id is compared with
     * the first 8 bytes of m's build id. This memory is readable: it lies in the mapping that the loader has reported.
     */
    if (m->build_id_word && (uintptr_t)m->build_id >= (uintptr_t)o.map_start &&
        (uintptr_t)m->build_id + 8 <= (uintptr_t)o.map_end)
        return *(const uint64_t *)m->build_id == m->build_id_word;
    return o.link_map == m->link_map && identify(m) == m->identity;
}
