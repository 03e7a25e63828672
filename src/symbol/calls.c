/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include <gelf.h>

#include "base/mem.h"
#include "symbol/calls_internal.h"

#define CALL_BYTES_MOST 8u /* a prefix, ff, and an address in memory with all that it may have */

static void read_code(struct symbol_calls *c)
{
    size_t count = 0;
    elf_getphdrnum(c->object->elf, &count);
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr ph;
        if (!gelf_getphdr(c->object->elf, (int)i, &ph) || ph.p_type != PT_LOAD || !(ph.p_flags & PF_X))
            continue;
        Elf_Data *data = elf_getdata_rawchunk(c->object->elf, (int64_t)ph.p_offset, ph.p_filesz, ELF_T_BYTE);
        if (data && data->d_buf && data->d_size == ph.p_filesz)
            *vec_push(&c->codes) = (struct symbol_code){ph.p_vaddr, ph.p_vaddr + ph.p_filesz, data->d_buf};
    }
}

struct symbol_calls *symbol_calls_open(const struct symbol_module *module)
{
    struct symbol_object *o;
    if (!module->path || module->path[0] != '/' ||
        symbol_object_open(module->root ? module->root : "", module->path, &o))
        return NULL;
    GElf_Ehdr file;
    if (!symbol_object_has_addresses(o) || !gelf_getehdr(o->elf, &file) || file.e_machine != EM_X86_64 ||
        (module->build_id_len && !symbol_object_has_build_id(o, module->build_id, module->build_id_len))) {
        symbol_object_free(o);
        return NULL;
    }
    struct symbol_calls *c = mem_array(1, sizeof(*c));
    c->object = o;
    read_code(c);
    symbol_plt_read(o->elf, &c->stubs);
    symbol_plt_read_slots(o->elf, &c->slots);
    return c;
}

void symbol_calls_free(struct symbol_calls *c)
{
    if (!c)
        return;
    vec_release(&c->codes);
    vec_release(&c->stubs);
    vec_release(&c->slots);
    symbol_object_free(c->object);
    free(c);
}

static const struct symbol_code *code_at(const struct symbol_calls *c, uint64_t address)
{
    vec_each (const struct symbol_code, code, &c->codes)
        if (address >= code->low && address < code->high)
            return code;
    return NULL;
}

/* Bytes behind the ff of a call through memory or a register, by its ModRM byte; 0: it is no call. */
static unsigned indirect_bytes(const uint8_t *modrm)
{
    unsigned mod = *modrm >> 6, rm = *modrm & 7;
    if ((*modrm >> 3 & 7) != 2)
        return 0;
    if (mod == 3)
        return 1;
    unsigned bytes = 1 + (rm == 4) + (mod == 1) + (mod == 2) * 4;
    if (mod == 0 && (rm == 5 || (rm == 4 && (modrm[1] & 7) == 5)))
        bytes += 4;
    return bytes;
}

static struct symbol_called by_slot(const struct symbol_calls *c, uint64_t slot)
{
    const char *symbol = symbol_slot_name(&c->slots, slot);
    return symbol ? (struct symbol_called){SYMBOL_CALL_SYMBOL, symbol, 0}
                  : (struct symbol_called){.how = SYMBOL_CALL_POINTER};
}

static struct symbol_called by_target(const struct symbol_calls *c, uint64_t target)
{
    vec_each (const struct symbol_stub, stub, &c->stubs)
        if (target >= stub->low && target < stub->high)
            return (struct symbol_called){SYMBOL_CALL_SYMBOL, stub->symbol, 0};
    return (struct symbol_called){.how = SYMBOL_CALL_CODE, .code = target};
}

/* Instructions cannot be read backwards with certainty: what is likeliest comes first. */
struct symbol_called symbol_calls_before(const struct symbol_calls *c, uint64_t return_address)
{
    const struct symbol_code *code = code_at(c, return_address - 1);
    if (!code || return_address - code->low < CALL_BYTES_MOST)
        return (struct symbol_called){.how = SYMBOL_CALL_POINTER};
    const uint8_t *end = code->bytes + (return_address - code->low);
    if (end[-6] == 0xff && end[-5] == 0x15) /* call *disp32(%rip) */
        return by_slot(c, return_address + symbol_calls_distance(end - 4));
    if (end[-5] == 0xe8 && code_at(c, return_address + symbol_calls_distance(end - 4))) /* call rel32 */
        return by_target(c, return_address + symbol_calls_distance(end - 4));
    for (unsigned n = 2; n < CALL_BYTES_MOST; n++)
        if (end[-(int)n] == 0xff && indirect_bytes(end - n + 1) == n - 1)
            return (struct symbol_called){.how = SYMBOL_CALL_POINTER};
    return (struct symbol_called){.how = SYMBOL_CALL_NONE};
}
