/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/unwind/dso.h"

#include <stdlib.h>
#include <string.h>

#include <gelf.h>

#include "base/hash_map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/unwind/dso_rules.h"
#include "symbol/elf_file.h"

#define SEGMENTS_MAX 256
#define STEPS_MAX    65536 /* cached steps; if there are more, the cache is emptied */

struct dso {
    struct symbol_object *object; /* NULL: opened by dso_open_image() */
    Elf *elf;
    struct VEC(GElf_Phdr) loads;
    GElf_Phdr rules; /* .eh_frame_hdr; p_memsz 0: none */
    struct unwind_module module;
    uint64_t module_address; /* the ELF's address of the module's first byte */
    Elf_Data *code;          /* the first executable segment; NULL: none */
    uint64_t code_address;
    struct map steps; /* address -> enum dso_step */
};

static bool is_wanted(const struct symbol_object *o, const char *root, const char *path, uint64_t inode)
{
    struct symbol_identity is;
    if (!symbol_object_has_addresses(o))
        return false;
    /* The device is not compared: on overlayfs and on subvolumes of btrfs, maps and stat(2) report different ones. */
    return !inode || (!symbol_object_identify(root, path, &is) && is.inode == inode);
}

static void read_segments(struct dso *f)
{
    size_t count = 0;
    elf_getphdrnum(f->elf, &count);
    for (size_t i = 0; i < count && i < SEGMENTS_MAX; i++) {
        GElf_Phdr ph;
        if (!gelf_getphdr(f->elf, (int)i, &ph))
            continue;
        if (ph.p_type == PT_LOAD)
            *vec_push(&f->loads) = ph;
        else if (ph.p_type == PT_GNU_EH_FRAME)
            f->rules = ph;
    }
}

static void find_code(struct dso *f)
{
    vec_each (const GElf_Phdr, ph, &f->loads)
        if (ph->p_flags & PF_X && !f->code) {
            f->code = elf_getdata_rawchunk(f->elf, (int64_t)ph->p_offset, ph->p_filesz, ELF_T_BYTE);
            f->code_address = ph->p_vaddr;
        }
}

/*
 * Describes the segment with the rules to the agent's unwinder as a module that is loaded where the segment's bytes lie
 * in our memory. Rules contain addresses of code as distances from the rules, so dso_row() moves an address of code by
 * the same amount. The unwinder reads nothing at that address.
 */
static void place_rules(struct dso *f)
{
    vec_each (const GElf_Phdr, ph, &f->loads) {
        uint64_t inside = f->rules.p_vaddr - ph->p_vaddr;
        if (f->rules.p_vaddr < ph->p_vaddr || inside >= ph->p_filesz)
            continue;
        Elf_Data *bytes = elf_getdata_rawchunk(f->elf, (int64_t)ph->p_offset, ph->p_filesz, ELF_T_BYTE);
        if (!bytes || !bytes->d_buf || bytes->d_size != ph->p_filesz)
            return;
        uintptr_t start = (uintptr_t)bytes->d_buf;
        f->module = (struct unwind_module){.start = start,
                                           .end = start + bytes->d_size,
                                           .rules_start = start,
                                           .rules_end = start + bytes->d_size,
                                           .eh_frame_hdr = (const uint8_t *)start + inside};
        f->module_address = ph->p_vaddr;
        return;
    }
}

static struct dso *with_rules(struct symbol_object *o, Elf *elf)
{
    struct dso *f = mem_alloc(sizeof(*f));
    f->object = o;
    f->elf = elf;
    read_segments(f);
    find_code(f);
    if (f->rules.p_memsz)
        place_rules(f);
    return f;
}

struct dso *dso_open(const char *root, const char *path, uint64_t inode)
{
    struct symbol_object *o;
    GElf_Ehdr header;
    if (path[0] != '/' || symbol_object_open(root, path, &o))
        return NULL;
    if (!is_wanted(o, root, path, inode) || !gelf_getehdr(o->elf, &header) || header.e_machine != EM_X86_64) {
        symbol_object_free(o);
        return NULL;
    }
    return with_rules(o, o->elf);
}

struct dso *dso_open_image(const void *image, size_t bytes)
{
    elf_version(EV_CURRENT);
    Elf *elf = elf_memory((char *)(uintptr_t)image, bytes); /* libelf only reads it */
    GElf_Ehdr header;
    if (!elf || !gelf_getehdr(elf, &header) || header.e_machine != EM_X86_64) {
        elf_end(elf);
        return NULL;
    }
    return with_rules(NULL, elf);
}

void dso_free(struct dso *f)
{
    if (!f)
        return;
    if (f->object)
        symbol_object_free(f->object);
    else
        elf_end(f->elf);
    vec_release(&f->loads);
    map_release(&f->steps);
    free(f);
}

size_t dso_build_id(const struct dso *f, const uint8_t **bits)
{
    return f->object ? symbol_object_build_id(f->object, bits) : 0;
}

bool dso_address(const struct dso *f, uint64_t offset, uint64_t *address)
{
    const GElf_Phdr *best = NULL;
    vec_each (const GElf_Phdr, ph, &f->loads) {
        /* A page with parts of two segments is mapped twice; an offset of code belongs to the executable segment. */
        uint64_t first = ph->p_offset & ~4095ull;
        bool inside = offset >= first && offset < ph->p_offset + ph->p_filesz;
        if (inside && (!best || (ph->p_flags & PF_X && !(best->p_flags & PF_X))))
            best = ph;
    }
    if (!best)
        return false;
    *address = best->p_vaddr + (offset - best->p_offset);
    return true;
}

bool dso_row(const struct dso *f, uint64_t address, bool exact, struct cfi_row *row)
{
    return f->module.eh_frame_hdr &&
           cfi_find(&f->module, f->module.start + (address - f->module_address), exact, row);
}

bool dso_eval(const struct dso *f, int32_t block, const struct expr_context *ctx, const uint64_t *first,
              uint64_t *result)
{
    return expr_eval(&f->module, block, ctx, first, result);
}

bool dso_is_sigreturn(const struct dso *f, uint64_t address)
{
    uint64_t inside = address - f->code_address;
    return f->code && address >= f->code_address && inside < f->code->d_size &&
           f->code->d_size - inside >= REGS_SIGRETURN_BYTES &&
           regs_is_sigreturn((const uint8_t *)f->code->d_buf + inside);
}

static enum dso_step find_step(const struct dso *f, uint64_t address)
{
    struct cfi_row row;
    if (!dso_row(f, address, false, &row))
        return DSO_NO_RULES;
    bool by_rbp = !row.cfa_expr && row.cfa_register == REG_RBP && row.cfa_offset == 16 && !row.signal_frame &&
                  row.how[SLOT_RA] == CFI_AT && row.value[SLOT_RA] == -8 && row.how[SLOT_RBP] == CFI_AT &&
                  row.value[SLOT_RBP] == -16;
    return by_rbp ? DSO_BY_RBP : DSO_OTHERWISE;
}

enum dso_step dso_step(struct dso *f, uint64_t address)
{
    size_t known = map_get_u64(&f->steps, address);
    if (known != MAP_NONE)
        return (enum dso_step)known;
    if (f->steps.len >= STEPS_MAX)
        map_release(&f->steps);
    return (enum dso_step)map_put_u64(&f->steps, address, find_step(f, address), NULL);
}
