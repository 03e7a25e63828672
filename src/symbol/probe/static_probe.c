/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/probe/static_probe.h"

#include <string.h>

#include <gelf.h>

#define NOTE_TYPE 3u
#define NOTE_NAME "stapsdt"

struct addresses {
    uint64_t place, base, semaphore;
};

/* Reads a text with its NUL. Returns NULL if it does not end within the note. */
static const char *take_text(const char **at, const char *end)
{
    const char *text = *at, *nul = memchr(text, '\0', (size_t)(end - text));
    *at = nul ? nul + 1 : end;
    return nul ? text : NULL;
}

/* `base`: where .stapsdt.base is now; prelinking may have moved everything since the note was made. */
static bool read_note(const char *desc, size_t bytes, uint64_t base, struct static_probe *p)
{
    struct addresses a;
    if (bytes < sizeof(a))
        return false;
    memcpy(&a, desc, sizeof(a));
    const uint64_t moved = base ? base - a.base : 0;
    const char *at = desc + sizeof(a), *end = desc + bytes;
    p->provider = take_text(&at, end);
    p->name = take_text(&at, end);
    p->operands = take_text(&at, end);
    p->address = a.place + moved;
    p->semaphore = a.semaphore ? a.semaphore + moved : 0;
    return p->provider && p->name && p->operands;
}

static void read_section(Elf_Data *data, uint64_t base, void (*fn)(void *arg, const struct static_probe *p),
                         void *arg)
{
    GElf_Nhdr note;
    size_t name, desc;
    for (size_t at = 0; data && (at = gelf_getnote(data, at, &note, &name, &desc)) > 0;) {
        const char *bytes = data->d_buf;
        struct static_probe p;
        if (note.n_type == NOTE_TYPE && note.n_namesz == sizeof(NOTE_NAME) &&
            !memcmp(bytes + name, NOTE_NAME, sizeof(NOTE_NAME)) &&
            read_note(bytes + desc, note.n_descsz, base, &p))
            fn(arg, &p);
    }
}

void static_probes_read(Elf *elf, void (*fn)(void *arg, const struct static_probe *p), void *arg)
{
    size_t names = 0;
    uint64_t base = 0;
    Elf_Scn *section = NULL;
    GElf_Shdr h;
    if (elf_getshdrstrndx(elf, &names))
        return;
    while ((section = elf_nextscn(elf, section))) {
        const char *name = gelf_getshdr(section, &h) ? elf_strptr(elf, names, h.sh_name) : NULL;
        if (name && !strcmp(name, ".stapsdt.base"))
            base = h.sh_addr;
    }
    while ((section = elf_nextscn(elf, section))) {
        const char *name = gelf_getshdr(section, &h) ? elf_strptr(elf, names, h.sh_name) : NULL;
        if (name && !strcmp(name, ".note.stapsdt") && h.sh_type == SHT_NOTE)
            read_section(elf_getdata(section, NULL), base, fn, arg);
    }
}
