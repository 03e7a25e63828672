/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include <gelf.h>

#include "symbol/calls_internal.h"

/* Where a target can be reached: its code or a stub of it, or a word that has its address. */
struct way {
    uint64_t low, high;
    const struct symbol_target *target;
};
struct ways VEC(struct way);

struct search {
    const struct symbol_calls *calls;
    struct ways code, slots;
    symbol_site_fn *fn;
    void *arg;
};

static void find_ways(struct search *s, const struct symbol_target *t)
{
    if (t->code)
        *vec_push(&s->code) = (struct way){t->code, t->code + 1, t};
    vec_each (const struct symbol_stub, stub, &s->calls->stubs)
        if (t->symbol && !strcmp(stub->symbol, t->symbol))
            *vec_push(&s->code) = (struct way){stub->low, stub->high, t};
    vec_each (const struct symbol_slot, slot, &s->calls->slots)
        if (t->symbol && !strcmp(slot->symbol, t->symbol))
            *vec_push(&s->slots) = (struct way){slot->address, slot->address + 1, t};
}

static bool is_stub(const struct symbol_calls *c, uint64_t address)
{
    vec_each (const struct symbol_stub, stub, &c->stubs)
        if (address >= stub->low && address < stub->high)
            return true;
    return false;
}

/*
 * An instruction that leads somewhere, as likely as bytes can tell: what precedes it is not looked at. Of the short
 * ones only jmp: others are too often bytes of something else.
 */
static bool decode(const uint8_t *p, uint64_t at, struct symbol_site *site, bool *by_slot, uint64_t *to)
{
    unsigned opcode = p[0] == 0xe8 || p[0] == 0xe9 || p[0] == 0xeb ? 1 : 2;
    bool is_jcc = p[0] == 0x0f && (p[1] & 0xf0) == 0x80;
    *by_slot = p[0] == 0xff && (p[1] == 0x15 || p[1] == 0x25);
    if (opcode == 2 && !is_jcc && !*by_slot)
        return false;
    bool is_short = p[0] == 0xeb;
    site->at = at;
    site->behind = at + opcode + (is_short ? 1 : 4);
    site->jumps = p[0] != 0xe8 && !(*by_slot && p[1] == 0x15);
    *to = site->behind + (is_short ? (uint64_t)(int64_t)(int8_t)p[1] : symbol_calls_distance(p + opcode));
    return true;
}

static void search_code(const struct search *s, const struct symbol_code *code)
{
    uint64_t len = code->high - code->low, to;
    for (uint64_t i = 0; i + 6 <= len; i++) {
        struct symbol_site site;
        bool by_slot;
        if (!decode(code->bytes + i, code->low + i, &site, &by_slot, &to))
            continue;
        vec_each (const struct way, way, by_slot ? &s->slots : &s->code)
            if (to >= way->low && to < way->high && !is_stub(s->calls, site.at))
                s->fn(s->arg, way->target, &site);
    }
}

void symbol_calls_of(const struct symbol_calls *c, const struct symbol_target *targets, size_t n,
                     symbol_site_fn *fn, void *arg)
{
    struct search s = {.calls = c, .fn = fn, .arg = arg};
    for (size_t i = 0; i < n; i++)
        find_ways(&s, &targets[i]);
    vec_each (const struct symbol_code, code, &c->codes)
        search_code(&s, code);
    vec_release(&s.code);
    vec_release(&s.slots);
}

/* The table of .eh_frame_hdr as all linkers write it: pairs of offsets from its beginning, in order. */
uint64_t symbol_calls_function(const struct symbol_calls *c, uint64_t address)
{
    size_t count = 0;
    GElf_Phdr ph;
    elf_getphdrnum(c->object->elf, &count);
    for (size_t i = 0; i < count; i++) {
        if (!gelf_getphdr(c->object->elf, (int)i, &ph) || ph.p_type != PT_GNU_EH_FRAME)
            continue;
        Elf_Data *data = elf_getdata_rawchunk(c->object->elf, (int64_t)ph.p_offset, ph.p_filesz, ELF_T_BYTE);
        const uint8_t *table = data && data->d_size >= 12 ? data->d_buf : NULL;
        if (!table || memcmp(table, "\1\x1b\3\x3b", 4) != 0)
            continue;
        uint64_t start = 0;
        for (size_t at = 12; at + 8 <= data->d_size; at += 8) {
            uint64_t begins = ph.p_vaddr + symbol_calls_distance(table + at);
            if (begins > address)
                break;
            start = begins;
        }
        return start;
    }
    return 0;
}

const char *symbol_calls_exported(const struct symbol_calls *c, uint64_t entry)
{
    GElf_Shdr header;
    GElf_Sym symbol;
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(c->object->elf, scn));) {
        Elf_Data *data =
            gelf_getshdr(scn, &header) && header.sh_type == SHT_DYNSYM ? elf_getdata(scn, NULL) : NULL;
        for (int i = 0; data && gelf_getsym(data, i, &symbol); i++)
            if (symbol.st_shndx != SHN_UNDEF && symbol.st_value == entry &&
                GELF_ST_TYPE(symbol.st_info) == STT_FUNC)
                return elf_strptr(c->object->elf, header.sh_link, symbol.st_name);
    }
    return NULL;
}
