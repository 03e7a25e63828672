/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/cfi.h"

#include <stddef.h>

#include "unwind/cursor.h"
#include "unwind/dwarf.h"

#define REMEMBER_MAX 4 /* nested DW_CFA_remember_state at most; compilers use 1, hand-written code 2 */

struct entry {
    uintptr_t pc_start, pc_bytes;
    int64_t data_align;
    uint64_t code_align;
    uint8_t pointer_encoding;
    bool augmentation_data; /* augmentation "z": an FDE has such data after pc_start and pc_bytes */
    bool signal_frame;
    struct cursor initial, program;
};

struct machine {
    struct cfi_row row;
    struct cfi_row initial;
    struct cfi_row remembered[REMEMBER_MAX];
    unsigned depth;
};

static struct cursor rules_from(const struct unwind_module *m, uintptr_t at)
{
    bool inside = at >= m->rules_start && at < m->rules_end;
    const uint8_t *end = (const uint8_t *)m->rules_end;
    return (struct cursor){.at = inside ? (const uint8_t *)at : end, .end = end, .overrun = !inside};
}

/* Returns a cursor over the .eh_frame record at `at`, after its length field. `overrun`: the record is invalid. */
static struct cursor enter_record(const struct unwind_module *m, uintptr_t at)
{
    struct cursor c = rules_from(m, at);
    uint64_t length = cursor_bytes(&c, 4);
    if (length == 0xffffffff)
        length = cursor_bytes(&c, 8);
    if (!length || !cursor_has(&c, length))
        c.overrun = true;
    else
        c.end = c.at + length;
    return c;
}

/* The neighbours of a pc in the sorted table of .eh_frame_hdr. */
struct neighbours {
    uintptr_t fde;        /* address of the last FDE whose code begins at or before pc; 0: none */
    uintptr_t next_start; /* the address at which the code of the next FDE begins; 0: none */
};

static bool search_table(const struct unwind_module *m, uintptr_t pc, struct neighbours *found)
{
    uintptr_t hdr = (uintptr_t)m->eh_frame_hdr;
    struct cursor c = rules_from(m, hdr);
    uint8_t version = (uint8_t)cursor_bytes(&c, 1), frame_enc = (uint8_t)cursor_bytes(&c, 1);
    uint8_t count_enc = (uint8_t)cursor_bytes(&c, 1), table_enc = (uint8_t)cursor_bytes(&c, 1);
    if (version != 1 || count_enc == PE_OMIT || table_enc != (PE_DATAREL | 0x0b))
        return false;
    cursor_pointer(&c, frame_enc, hdr);
    uint64_t count = cursor_pointer(&c, count_enc, hdr);
    if (c.overrun || !count || count > (uint64_t)(c.end - c.at) / 8)
        return false;
    const int32_t *table =
        (const void *)c.at; /* pairs: start of the code, address of the FDE; both minus `hdr` */
    int64_t want = (int64_t)(pc - hdr);
    uint64_t low = 0, high = count;
    while (low < high) {
        uint64_t mid = low + (high - low) / 2;
        if (table[2 * mid] <= want)
            low = mid + 1;
        else
            high = mid;
    }
    found->fde = low ? hdr + (uintptr_t)(intptr_t)table[2 * low - 1] : 0;
    found->next_start = low < count ? hdr + (uintptr_t)(intptr_t)table[2 * low] : 0;
    return true;
}

static bool parse_cie(const struct unwind_module *m, uintptr_t at, struct entry *e)
{
    struct cursor c = enter_record(m, at);
    if (cursor_bytes(&c, 4) != 0)
        return false;
    uint8_t version = (uint8_t)cursor_bytes(&c, 1);
    const char *augmentation = (const char *)c.at;
    while (cursor_bytes(&c, 1))
        ;
    if (c.overrun || (version != 1 && version != 3) || (*augmentation && *augmentation != 'z'))
        return false;
    e->code_align = cursor_uleb(&c);
    e->data_align = cursor_sleb(&c);
    uint64_t ra = version == 1 ? cursor_bytes(&c, 1) : cursor_uleb(&c);
    if (ra != REG_RA)
        return false;
    e->pointer_encoding = 0;
    e->signal_frame = false;
    e->augmentation_data = *augmentation == 'z';
    if (e->augmentation_data) {
        uint64_t length = cursor_uleb(&c);
        if (!cursor_has(&c, length))
            return false;
        struct cursor data = {.at = c.at, .end = c.at + length};
        c.at += length;
        for (const char *a = augmentation + 1; *a; a++) {
            if (*a == 'R')
                e->pointer_encoding = (uint8_t)cursor_bytes(&data, 1);
            else if (*a == 'L')
                cursor_skip(&data, 1);
            else if (*a == 'P')
                cursor_pointer(&data, (uint8_t)cursor_bytes(&data, 1) & 0x0f, 0);
            else if (*a == 'S')
                e->signal_frame = true;
            else
                return false;
        }
        if (data.overrun)
            return false;
    }
    e->initial = c;
    return !c.overrun;
}

static bool parse_fde(const struct unwind_module *m, uintptr_t at, struct entry *e)
{
    struct cursor c = enter_record(m, at);
    uintptr_t cie_field = (uintptr_t)c.at;
    uint64_t delta = cursor_bytes(&c, 4);
    if (c.overrun || !delta || !parse_cie(m, cie_field - delta, e))
        return false;
    e->pc_start = cursor_pointer(&c, e->pointer_encoding, 0);
    e->pc_bytes = cursor_pointer(&c, e->pointer_encoding & 0x0f, 0);
    if (e->augmentation_data)
        cursor_skip(&c, cursor_uleb(&c)); /* skips the augmentation data: the address of the LSDA */
    e->program = c;
    return !c.overrun;
}

static void set(struct cfi_row *row, uint64_t reg, enum cfi_how how, int64_t value)
{
    int slot = regs_slot(reg);
    if (slot < 0)
        return; /* a register that callees need not preserve: the walk does not need its value */
    row->how[slot] = how;
    row->value[slot] = (int32_t)value;
}

static void set_initial(struct machine *vm, uint64_t reg)
{
    int slot = regs_slot(reg);
    if (slot < 0)
        return;
    vm->row.how[slot] = vm->initial.how[slot];
    vm->row.value[slot] = vm->initial.value[slot];
}

static int32_t take_block(const struct unwind_module *m, struct cursor *c)
{
    int32_t at = (int32_t)((uintptr_t)c->at - m->start);
    cursor_skip(c, cursor_uleb(c));
    return at;
}

/* Runs `op` if it is an instruction that defines the CFA. False: `op` is another instruction. */
static bool step_cfa(const struct unwind_module *m, const struct entry *e, struct cursor *c,
                     struct cfi_row *row, uint8_t op)
{
    switch (op) {
    case DW_CFA_def_cfa:
    case DW_CFA_def_cfa_sf:
        row->cfa_register = (uint8_t)cursor_uleb(c);
        row->cfa_offset =
            (int32_t)(op == DW_CFA_def_cfa ? (int64_t)cursor_uleb(c) : cursor_sleb(c) * e->data_align);
        row->cfa_expr = 0;
        return true;
    case DW_CFA_def_cfa_register:
        row->cfa_register = (uint8_t)cursor_uleb(c);
        row->cfa_expr = 0;
        return true;
    case DW_CFA_def_cfa_offset:
        row->cfa_offset = (int32_t)cursor_uleb(c);
        return true;
    case DW_CFA_def_cfa_offset_sf:
        row->cfa_offset = (int32_t)(cursor_sleb(c) * e->data_align);
        return true;
    case DW_CFA_def_cfa_expression:
        row->cfa_expr = take_block(m, c);
        return true;
    }
    return false;
}

/* Runs `op` if it is an instruction that defines the rule of one register. False: `op` is another instruction. */
static bool step_register(const struct unwind_module *m, const struct entry *e, struct cursor *c,
                          struct machine *vm, uint8_t op)
{
    struct cfi_row *row = &vm->row;
    uint64_t reg;
    switch (op) {
    case DW_CFA_offset_extended:
    case DW_CFA_val_offset:
        reg = cursor_uleb(c);
        set(row, reg, op == DW_CFA_val_offset ? CFI_IS : CFI_AT, (int64_t)cursor_uleb(c) * e->data_align);
        return true;
    case DW_CFA_offset_extended_sf:
    case DW_CFA_val_offset_sf:
        reg = cursor_uleb(c);
        set(row, reg, op == DW_CFA_val_offset_sf ? CFI_IS : CFI_AT, cursor_sleb(c) * e->data_align);
        return true;
    case DW_CFA_GNU_negative_offset_extended:
        reg = cursor_uleb(c);
        set(row, reg, CFI_AT, -(int64_t)cursor_uleb(c) * e->data_align);
        return true;
    case DW_CFA_restore_extended:
        set_initial(vm, cursor_uleb(c));
        return true;
    case DW_CFA_undefined:
        set(row, cursor_uleb(c), CFI_UNDEFINED, 0);
        return true;
    case DW_CFA_same_value:
        set(row, cursor_uleb(c), CFI_SAME, 0);
        return true;
    case DW_CFA_register:
        reg = cursor_uleb(c);
        set(row, reg, CFI_REGISTER, (int64_t)cursor_uleb(c));
        return true;
    case DW_CFA_expression:
    case DW_CFA_val_expression:
        reg = cursor_uleb(c);
        set(row, reg, op == DW_CFA_expression ? CFI_AT_EXPR : CFI_IS_EXPR, take_block(m, c));
        return true;
    }
    return false;
}

/* Returns the bytes by which `op` advances the location. Negative: `op` is another instruction, or invalid. */
static int64_t advance_of(const struct entry *e, struct cursor *c, uint8_t op, uintptr_t loc)
{
    if ((op & 0xc0) == DW_CFA_advance_loc)
        return (int64_t)((op & 0x3f) * e->code_align);
    if (op == DW_CFA_advance_loc1)
        return (int64_t)(cursor_bytes(c, 1) * e->code_align);
    if (op == DW_CFA_advance_loc2)
        return (int64_t)(cursor_bytes(c, 2) * e->code_align);
    if (op == DW_CFA_advance_loc4)
        return (int64_t)(cursor_bytes(c, 4) * e->code_align);
    if (op == DW_CFA_set_loc)
        return (int64_t)(cursor_pointer(c, e->pointer_encoding, 0) - loc);
    return -1;
}

/* Runs the instructions at `c`, to the end or until the location exceeds pc. False: one is invalid or unsupported. */
static bool run(const struct unwind_module *m, const struct entry *e, struct cursor c, struct machine *vm,
                uintptr_t pc)
{
    uintptr_t loc = e->pc_start;
    while (c.at < c.end && !c.overrun) {
        uint8_t op = (uint8_t)cursor_bytes(&c, 1), low = op & 0x3f;
        int64_t advance = advance_of(e, &c, op, loc);
        if (advance >= 0) {
            loc += (uintptr_t)advance;
            if (loc > pc)
                return !c.overrun;
        } else if ((op & 0xc0) == DW_CFA_offset) {
            set(&vm->row, low, CFI_AT, (int64_t)cursor_uleb(&c) * e->data_align);
        } else if ((op & 0xc0) == DW_CFA_restore) {
            set_initial(vm, low);
        } else if (op == DW_CFA_remember_state) {
            if (vm->depth == REMEMBER_MAX)
                return false;
            vm->remembered[vm->depth++] = vm->row;
        } else if (op == DW_CFA_restore_state) {
            if (!vm->depth)
                return false;
            vm->row = vm->remembered[--vm->depth];
        } else if (op == DW_CFA_GNU_args_size) {
            cursor_uleb(&c);
        } else if (op != DW_CFA_nop && !step_cfa(m, e, &c, &vm->row, op) &&
                   !step_register(m, e, &c, vm, op)) {
            return false;
        }
    }
    return !c.overrun;
}

/*
 * Called if no FDE covers the code from code_start to pc. Returns true if the frame has no caller, in one of two cases:
 * - The return address is the first byte of the code of the next FDE, and no FDE covers the byte before it, the end of
 *   the call. So no call pushed this address: the program stored it in a stack that it created, as makecontext() stores
 *   __start_context.
 * - The entry point of the program or the loader is in this code. (The loader's code continues with _dl_start_user,
 *   which calls the constructors of libraries.)
 */
static bool has_no_caller(const struct unwind_module *m, uintptr_t pc, bool exact, uintptr_t code_start,
                          uintptr_t next_start)
{
    return (!exact && next_start == pc + 1) || (m->entry && m->entry >= code_start && m->entry <= pc);
}

bool cfi_find(const struct unwind_module *m, uintptr_t pc, bool exact, struct cfi_row *row)
{
    struct entry e = {.pc_start = m->start};
    struct machine vm;
    struct neighbours found;
    if (!m->eh_frame_hdr || !search_table(m, pc, &found) || (found.fde && !parse_fde(m, found.fde, &e)))
        return false;
    if (pc - e.pc_start >= e.pc_bytes) {
        *row = (struct cfi_row){.how = {[SLOT_RA] = CFI_UNDEFINED}};
        return has_no_caller(m, pc, exact, e.pc_start + e.pc_bytes, found.next_start);
    }
    vm.row = (struct cfi_row){.signal_frame = e.signal_frame};
    vm.initial = vm.row;
    vm.depth = 0;
    if (!run(m, &e, e.initial, &vm, UINTPTR_MAX))
        return false;
    vm.initial = vm.row;
    if (!run(m, &e, e.program, &vm, pc))
        return false;
    *row = vm.row;
    return true;
}
