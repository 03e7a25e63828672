/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/scopes.h"

#include "symbol/dienames.h"
#include "symbol/spans.h"

#include <string.h>

#include <dwarf.h>
#include <gelf.h>

/* DIEs and ranges read from one file before we call it malformed, and how deep its trees may be. */
#define BUDGET    (1ULL << 27)
#define DEPTH_MAX 256

/** An inlined call: a DW_TAG_inlined_subroutine. */
struct inlined {
    Dwarf_Die die;
    size_t parent; /* index, or NONE: the function itself */
    unsigned depth;
    const char *name, *call_file; /* once `named` */
    unsigned call_line;
    bool named;
};
#define NONE SIZE_MAX

struct function {
    Dwarf_Die die;
    uint64_t entry;   /* where its first range begins */
    const char *name; /* NULL until asked for */
    bool opened;
    struct VEC(struct inlined) inlined;
    struct symbol_spans spans; /* id: index into inlined */
};

struct unit {
    Dwarf_Die die;   /* has the lines */
    Dwarf_Die tree;  /* has the functions: another one when the unit is split */
    const char *dir; /* of the compiler when it ran, or NULL */
    bool scopes;     /* see symbol_die_has_scopes() */
    bool opened, searched;
    struct VEC(struct function) functions;
    struct symbol_spans spans; /* id: index into functions */
    Dwarf_Lines *lines;
    size_t line_count;
    Dwarf_Files *files;
};

struct symbol_scopes {
    struct symbol_die_names names;
    struct VEC(struct unit) units;
    struct symbol_spans spans; /* id: index into units */
    uint64_t lowest_code;      /* ranges below it belong to functions that the linker dropped */
};

static void add_ranges(struct symbol_scopes *s, Dwarf_Die *die, struct symbol_spans *spans, size_t id,
                       uint64_t *entry)
{
    Dwarf_Addr base, low, high;
    ptrdiff_t at = 0;
    while (s->names.budget && (at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
        s->names.budget--;
        if (low < s->lowest_code || low >= high)
            continue;
        if (entry && !*entry)
            *entry = low;
        symbol_spans_add(spans, low, high, id);
    }
}

static void add_function(struct symbol_scopes *s, struct unit *u, Dwarf_Die *die)
{
    size_t before = u->spans.len;
    uint64_t entry = 0;
    add_ranges(s, die, &u->spans, u->functions.len, &entry);
    if (u->spans.len > before)
        *vec_push(&u->functions) = (struct function){.die = *die, .entry = entry};
}

static bool may_hold_functions(int tag, bool deep)
{
    switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
        return true;
    case DW_TAG_subprogram:
    case DW_TAG_lexical_block:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_interface_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_inlined_subroutine:
        return deep;
    default:
        return false;
    }
}

/** Definitions stand at the top or in namespaces; only when `deep` also in types and in other functions. */
static void add_functions(struct symbol_scopes *s, struct unit *u, Dwarf_Die *parent, bool deep,
                          unsigned depth)
{
    Dwarf_Die die;
    if (depth > DEPTH_MAX || !symbol_die_first(&s->names, parent, &die))
        return;
    do {
        int tag = dwarf_tag(&die);
        if (tag == DW_TAG_subprogram)
            add_function(s, u, &die);
        if (may_hold_functions(tag, deep))
            add_functions(s, u, &die, deep, depth + 1);
    } while (symbol_die_next(&s->names, &die));
}

static void release_functions(struct unit *u)
{
    vec_each (struct function, f, &u->functions) {
        vec_release(&f->inlined);
        symbol_spans_release(&f->spans);
    }
    vec_release(&u->functions);
    symbol_spans_release(&u->spans);
}

static struct function *search_function(struct unit *u, uint64_t address)
{
    size_t i = symbol_spans_seek(&u->spans, address);
    if (!symbol_spans_next(&u->spans, address, &i))
        return NULL;
    return &u->functions.at[u->spans.at[i].id];
}

static struct function *find_function(struct symbol_scopes *s, struct unit *u, uint64_t address)
{
    if (!u->opened) {
        add_functions(s, u, &u->tree, false, 0);
        symbol_spans_sort(&u->spans);
        u->opened = true;
    }
    struct function *f = search_function(u, address);
    if (f || u->searched)
        return f;
    release_functions(u);
    add_functions(s, u, &u->tree, true, 0);
    symbol_spans_sort(&u->spans);
    u->searched = true;
    return search_function(u, address);
}

static void add_inlined(struct symbol_scopes *s, struct function *f, Dwarf_Die *parent, size_t caller,
                        unsigned depth)
{
    Dwarf_Die die;
    if (depth > DEPTH_MAX || !symbol_die_first(&s->names, parent, &die))
        return;
    do {
        int tag = dwarf_tag(&die);
        size_t inside = caller;
        if (tag == DW_TAG_inlined_subroutine) {
            inside = f->inlined.len;
            *vec_push(&f->inlined) = (struct inlined){.die = die, .parent = caller, .depth = depth};
            add_ranges(s, &die, &f->spans, inside, NULL);
        }
        if (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
            tag == DW_TAG_catch_block || tag == DW_TAG_with_stmt)
            add_inlined(s, f, &die, inside, depth + 1);
    } while (symbol_die_next(&s->names, &die));
}

/** The innermost inlined call that holds the address, or NONE. */
static size_t find_inlined(struct symbol_scopes *s, struct function *f, uint64_t address)
{
    if (!f->opened) {
        add_inlined(s, f, &f->die, NONE, 0);
        symbol_spans_sort(&f->spans);
        f->opened = true;
    }
    size_t best = NONE;
    int found = 0;
    for (size_t i = symbol_spans_seek(&f->spans, address);
         found < DEPTH_MAX && symbol_spans_next(&f->spans, address, &i); found++) {
        size_t id = f->spans.at[i].id;
        if (best == NONE || f->inlined.at[id].depth > f->inlined.at[best].depth)
            best = id;
    }
    return best;
}

static const char *read_text(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    return dwarf_attr(die, name, &attribute) ? dwarf_formstring(&attribute) : NULL;
}

static unsigned read_number(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) != 0 || value > UINT32_MAX)
        return 0;
    return (unsigned)value;
}

static void name_inlined(struct symbol_scopes *s, struct unit *u, struct inlined *call)
{
    if (call->named)
        return;
    call->named = true;
    call->name = symbol_die_name(&s->names, &call->die, u->scopes, 0);
    call->call_line = read_number(&call->die, DW_AT_call_line);
    size_t count = 0;
    if (!u->files && dwarf_getsrcfiles(&u->die, &u->files, &count) != 0)
        u->files = NULL;
    if (u->files && dwarf_hasattr(&call->die, DW_AT_call_file))
        call->call_file =
            symbol_names_path(s->names.names, u->dir,
                              dwarf_filesrc(u->files, read_number(&call->die, DW_AT_call_file), NULL, NULL));
}

/** The last row at or before the address, unless a sequence ends there. Rows are sorted by libdw. */
static Dwarf_Line *find_line(struct unit *u, uint64_t address)
{
    if (!u->lines && dwarf_getsrclines(&u->die, &u->lines, &u->line_count) != 0)
        u->line_count = 0;
    size_t from = 0, to = u->line_count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        Dwarf_Addr low;
        if (dwarf_lineaddr(dwarf_onesrcline(u->lines, middle), &low) == 0 && low <= address)
            from = middle + 1;
        else
            to = middle;
    }
    bool ends = true;
    Dwarf_Line *line = from ? dwarf_onesrcline(u->lines, from - 1) : NULL;
    return line && dwarf_lineendsequence(line, &ends) == 0 && !ends ? line : NULL;
}

static void append_frames(struct symbol_scopes *s, struct unit *u, struct function *f, uint64_t address,
                          struct symbol_frame_list *out)
{
    struct symbol_frame frame = {0};
    Dwarf_Line *line = find_line(u, address);
    int number = 0;
    if (line) {
        frame.file = symbol_names_path(s->names.names, u->dir, dwarf_linesrc(line, NULL, NULL));
        frame.line = dwarf_lineno(line, &number) == 0 && number > 0 ? (unsigned)number : 0;
    }
    for (size_t i = f ? find_inlined(s, f, address) : NONE; i != NONE; i = f->inlined.at[i].parent) {
        struct inlined *call = &f->inlined.at[i];
        name_inlined(s, u, call);
        frame.function = call->name ? call->name : symbol_names_store(s->names.names, "[inlined]");
        frame.inlined = true;
        *vec_push(out) = frame;
        frame = (struct symbol_frame){.file = call->call_file, .line = call->call_line};
    }
    frame.inlined = false;
    if (f && !f->name)
        f->name = symbol_die_name(&s->names, &f->die, u->scopes, f->entry);
    frame.function = f ? f->name : NULL;
    *vec_push(out) = frame;
}

bool symbol_scopes_find(struct symbol_scopes *s, uint64_t address, struct symbol_frame_list *out)
{
    struct unit *lines_only = NULL;
    int found = 0;
    for (size_t i = symbol_spans_seek(&s->spans, address);
         found < DEPTH_MAX && symbol_spans_next(&s->spans, address, &i); found++) {
        struct unit *u = &s->units.at[s->spans.at[i].id];
        struct function *f = find_function(s, u, address);
        if (f) {
            append_frames(s, u, f, address, out);
            return true;
        }
        if (!lines_only || !find_line(lines_only, address))
            lines_only = u;
    }
    if (lines_only)
        append_frames(s, lines_only, NULL, address, out);
    return lines_only != NULL;
}

/** The lowest address of executable code by the section headers; at least 1. */
static uint64_t find_lowest_code(Elf *elf)
{
    uint64_t lowest = UINT64_MAX;
    for (Elf_Scn *scn = NULL; elf && (scn = elf_nextscn(elf, scn));) {
        GElf_Shdr header;
        if (gelf_getshdr(scn, &header) && (header.sh_flags & SHF_EXECINSTR) && header.sh_addr < lowest)
            lowest = header.sh_addr;
    }
    return lowest == UINT64_MAX || !lowest ? 1 : lowest;
}

struct symbol_scopes *symbol_scopes_new(Dwarf *dwarf, struct symbol_table *table, struct symbol_names *names,
                                        bool split)
{
    struct symbol_scopes *s = mem_alloc(sizeof(*s));
    s->names = (struct symbol_die_names){.names = names, .table = table, .budget = BUDGET};
    s->lowest_code = find_lowest_code(dwarf_getelf(dwarf));
    Dwarf_CU *cu = NULL;
    Dwarf_Die die, split_die = {0};
    uint8_t type;
    while (s->names.budget &&
           dwarf_get_units(dwarf, cu, &cu, NULL, &type, &die, split ? &split_die : NULL) == 0) {
        s->names.budget--;
        if (type != DW_UT_compile && type != DW_UT_skeleton)
            continue;
        size_t id = s->units.len;
        bool has_split = type == DW_UT_skeleton && split && split_die.addr;
        *vec_push(&s->units) = (struct unit){.die = die,
                                             .tree = has_split ? split_die : die,
                                             .dir = read_text(&die, DW_AT_comp_dir),
                                             .scopes = symbol_die_has_scopes(has_split ? &split_die : &die)};
        add_ranges(s, &die, &s->spans, id, NULL);
    }
    symbol_spans_sort(&s->spans);
    return s;
}

void symbol_scopes_free(struct symbol_scopes *s)
{
    if (!s)
        return;
    vec_each (struct unit, u, &s->units)
        release_functions(u);
    vec_release(&s->units);
    symbol_spans_release(&s->spans);
    symbol_die_names_release(&s->names);
    free(s);
}
