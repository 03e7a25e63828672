/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/symtab.h"

#include "base/buf.h"
#include "symbol/plt.h"
#include "symbol/spans.h"

#include <stdbool.h>
#include <string.h>

#include <gelf.h>

/* Aliases of one function; a file with more says nothing sensible. */
#define ALIASES_MAX 64

struct entry {
    Elf *elf; /* NULL: `stub` is the name */
    const char *stub;
    size_t strings, name; /* section and offset */
    bool sized;           /* a function with a length, not a label */
    int bind;
};

struct symbol_table {
    struct symbol_names *names;
    struct symbol_spans spans; /* id: index into entries */
    struct VEC(struct entry) entries;
};

/* By section number: where it ends, 0 unless it has code, and what to add to the values of symbols. */
struct section {
    uint64_t end, add;
};

struct sections VEC(struct section);

/* In a relocatable file values are offsets in the section, which has an address if it was laid out. */
static struct sections read_sections(Elf *elf)
{
    struct sections s = {0};
    size_t count = 0;
    GElf_Ehdr file;
    if (elf_getshdrnum(elf, &count) != 0 || !gelf_getehdr(elf, &file))
        return s;
    for (size_t i = 0; i < count; i++) {
        GElf_Shdr header;
        Elf_Scn *scn = elf_getscn(elf, i);
        bool code = scn && gelf_getshdr(scn, &header) && (header.sh_flags & SHF_EXECINSTR);
        *vec_push(&s) = (struct section){.end = code ? header.sh_addr + header.sh_size : 0,
                                         .add = code && file.e_type == ET_REL ? header.sh_addr : 0};
    }
    return s;
}

static void add_symbol(struct symbol_table *t, const GElf_Sym *symbol, uint64_t section_end, Elf *elf,
                       size_t strings)
{
    int type = GELF_ST_TYPE(symbol->st_info);
    bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
    if ((!function && type != STT_NOTYPE) || symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS ||
        !symbol->st_name || !symbol->st_value)
        return;
    if (!section_end && !(function && symbol->st_size))
        return;
    uint64_t end = symbol->st_size ? symbol->st_value + symbol->st_size : section_end;
    if (end <= symbol->st_value)
        return;
    size_t id = t->entries.len;
    *vec_push(&t->entries) = (struct entry){.elf = elf,
                                            .strings = strings,
                                            .name = symbol->st_name,
                                            .sized = function && symbol->st_size,
                                            .bind = GELF_ST_BIND(symbol->st_info)};
    symbol_spans_add(&t->spans, symbol->st_value, end, id);
}

static void add_symbols(struct symbol_table *t, Elf *elf, Elf_Scn *scn, const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(scn, NULL);
    if (!data || header->sh_type == SHT_NOBITS)
        return;
    struct sections sections = read_sections(elf);
    GElf_Sym symbol;
    for (int i = 1; gelf_getsym(data, i, &symbol); i++) {
        bool in = symbol.st_shndx < sections.len;
        symbol.st_value += in ? sections.at[symbol.st_shndx].add : 0;
        add_symbol(t, &symbol, in ? sections.at[symbol.st_shndx].end : 0, elf, header->sh_link);
    }
    vec_release(&sections);
}

/** Adds the tables of one type; false when the file has none. */
static bool add_tables(struct symbol_table *t, Elf *elf, uint32_t type)
{
    size_t before = t->entries.len;
    for (Elf_Scn *scn = NULL; elf && (scn = elf_nextscn(elf, scn));) {
        GElf_Shdr header;
        if (gelf_getshdr(scn, &header) && header.sh_type == type)
            add_symbols(t, elf, scn, &header);
    }
    return t->entries.len > before;
}

static void add_stubs(struct symbol_table *t, Elf *elf)
{
    struct symbol_stubs stubs = {0};
    struct buf text = BUF_INIT;
    symbol_plt_read(elf, &stubs);
    vec_each (struct symbol_stub, stub, &stubs) {
        const char *name = symbol_names_function(t->names, stub->symbol);
        if (!name)
            continue;
        buf_reset(&text);
        buf_printf(&text, "%s@plt", name);
        symbol_spans_add(&t->spans, stub->low, stub->high, t->entries.len);
        *vec_push(&t->entries) =
            (struct entry){.stub = symbol_names_store(t->names, buf_str(&text)), .sized = true};
    }
    buf_release(&text);
    vec_release(&stubs);
}

/** A symbol without a length ends where the next one begins. */
static void end_labels(struct symbol_table *t)
{
    uint64_t next = UINT64_MAX, here = UINT64_MAX;
    for (size_t i = t->spans.len; i > 0; i--) {
        struct symbol_span *span = &t->spans.at[i - 1];
        if (span->low != here) {
            next = here;
            here = span->low;
        }
        if (!t->entries.at[span->id].sized && span->high > next)
            span->high = next;
    }
    symbol_spans_sort(&t->spans);
}

struct symbol_table *symbol_table_new(Elf *main, Elf *debug, struct symbol_names *names)
{
    struct symbol_table *t = mem_alloc(sizeof(*t));
    t->names = names;
    if (!add_tables(t, main, SHT_SYMTAB))
        add_tables(t, debug, SHT_SYMTAB);
    add_tables(t, main, SHT_DYNSYM);
    if (main)
        add_stubs(t, main);
    symbol_spans_sort(&t->spans);
    end_labels(t);
    return t;
}

void symbol_table_free(struct symbol_table *t)
{
    if (!t)
        return;
    symbol_spans_release(&t->spans);
    vec_release(&t->entries);
    free(t);
}

static const char *raw_name(const struct entry *e)
{
    const char *raw = e->elf ? elf_strptr(e->elf, e->strings, e->name) : e->stub;
    /* $x, $d: mapping symbols; .L: labels of the assembler */
    return raw && raw[0] && raw[0] != '$' && strncmp(raw, ".L", 2) != 0 ? raw : NULL;
}

static bool is_mangled(const char *raw)
{
    return raw[0] == '_' && (raw[1] == 'Z' || raw[1] == 'R');
}

static size_t underscores(const char *raw)
{
    return strspn(raw, "_");
}

/** How much a symbol is the one meant for callers. */
static int rank(int bind)
{
    return bind == STB_LOCAL ? 0 : bind == STB_WEAK ? 1 : 2;
}

/** Whether people would rather read a than b. */
static bool is_better(const char *a, int a_bind, const char *b, int b_bind)
{
    if (!b)
        return true;
    if (underscores(a) != underscores(b))
        return underscores(a) < underscores(b);
    if (rank(a_bind) != rank(b_bind))
        return rank(a_bind) > rank(b_bind);
    size_t a_len = strcspn(a, "@"), b_len = strcspn(b, "@");
    if (a_len != b_len)
        return a_len < b_len;
    return strcmp(a, b) < 0;
}

/** The best raw name among `best` and the symbols that begin together with spans.at[i]. */
static const char *best_at(const struct symbol_table *t, size_t i, const char *best)
{
    uint64_t low = t->spans.at[i].low;
    size_t from = i, seen = 0;
    int best_bind = STB_LOCAL;
    while (from > 0 && t->spans.at[from - 1].low == low && i - from < ALIASES_MAX)
        from--;
    bool sized = false;
    for (size_t k = from; k < t->spans.len && t->spans.at[k].low == low && seen < ALIASES_MAX; k++, seen++)
        sized |= t->entries.at[t->spans.at[k].id].sized;
    seen = 0;
    for (size_t k = from; k < t->spans.len && t->spans.at[k].low == low && seen < ALIASES_MAX; k++, seen++) {
        const struct entry *e = &t->entries.at[t->spans.at[k].id];
        const char *raw = e->elf && e->sized == sized ? raw_name(e) : NULL;
        if (raw && is_better(raw, e->bind, best, best_bind)) {
            best = raw;
            best_bind = e->bind;
        }
    }
    return best;
}

const char *symbol_table_find(struct symbol_table *t, uint64_t address)
{
    const char *label = NULL;
    for (size_t i = symbol_spans_seek(&t->spans, address); symbol_spans_next(&t->spans, address, &i);) {
        const struct entry *e = &t->entries.at[t->spans.at[i].id];
        if (!e->elf)
            return e->stub;
        if (!e->sized && label)
            continue;
        const char *raw = raw_name(e) ? best_at(t, i, NULL) : NULL;
        if (raw && e->sized)
            return symbol_names_function(t->names, raw);
        if (raw)
            label = raw;
    }
    return symbol_names_function(t->names, label);
}

const char *symbol_table_alias(struct symbol_table *t, uint64_t entry, const char *raw)
{
    if (raw && is_mangled(raw))
        return symbol_names_function(t->names, raw);
    const char *best = raw;
    for (size_t i = symbol_spans_seek(&t->spans, entry); symbol_spans_next(&t->spans, entry, &i);) {
        const struct entry *e = &t->entries.at[t->spans.at[i].id];
        if (t->spans.at[i].low != entry)
            break;
        if (!e->elf || !e->sized)
            continue;
        const char *symbol = raw_name(e);
        if (symbol && is_mangled(symbol))
            return symbol_names_function(t->names, symbol);
        if (symbol) {
            best = best_at(t, i, raw);
            break;
        }
    }
    return symbol_names_function(t->names, best);
}
