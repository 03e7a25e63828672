/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/kallsyms.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/sigsafe/str.h"

#define PACK_BYTES    (2u << 20)
#define MODULES_MAX   UINT16_MAX
#define GONE_MAX      65536u
#define TEXTS_MAX     (UINT32_MAX / 2)
#define HALF_OF_SPACE (1ull << 63)

void kallsyms_release(struct kallsyms *k)
{
    vec_release(&k->all);
    vec_release(&k->modules);
    map_release(&k->by_module);
    buf_release(&k->texts);
    *k = (struct kallsyms){.lines = 0};
}

const char *kallsyms_name(const struct kallsyms *k, size_t at)
{
    return k->texts.data + k->all.at[at].name;
}

const char *kallsyms_module_name(const struct kallsyms *k, size_t at)
{
    return k->texts.data + k->modules.at[k->all.at[at].module].name;
}

bool kallsyms_passes(const struct kallsyms *k, size_t at)
{
    return k->all.at[at].module != 0;
}

uint64_t kallsyms_bytes(const struct kallsyms *k, size_t at)
{
    return at + 1 < k->all.len ? k->all.at[at + 1].address - k->all.at[at].address : 0;
}

/* ---- lines ---- */

static uint32_t store_text(struct kallsyms *k, const char *text, size_t len)
{
    size_t at = k->texts.len;
    if (at + len >= TEXTS_MAX)
        return 0;
    buf_add(&k->texts, text, len);
    buf_addch(&k->texts, '\0');
    return (uint32_t)at;
}

static uint16_t module_of(struct kallsyms *k, const char *name, size_t len)
{
    bool added;
    if (k->modules.len >= MODULES_MAX)
        return 0;
    size_t at = map_put(&k->by_module, name, len, k->modules.len, &added);
    if (added) {
        struct kallsyms_module *m = vec_push(&k->modules);
        m->made = len > 2 && !memcmp(name, "__", 2);
        m->made |= len == 3 && !memcmp(name, "bpf", 3);
        m->name = store_text(k, name, len);
    }
    return (uint16_t)at;
}

/* Hexadecimal digits up to a blank; the place behind that, or NULL. Half a million of them: strtoull takes as long
 * as all the rest. */
static const char *take_address(const char *at, uint64_t *out)
{
    uint64_t sum = 0;
    int digits = 0;
    for (;; at++, digits++) {
        unsigned c = (unsigned char)*at, digit = c - '0';
        if (digit > 9) {
            digit = (c | 0x20) - 'a' + 10;
            if (digit < 10 || digit > 15)
                break;
        }
        sum = sum << 4 | digit;
    }
    *out = sum;
    return *at == ' ' && digits && digits <= 16 ? at + 1 : NULL;
}

/* Length of what can be a name; it ends at a blank or at the end of the line. */
static size_t name_length(const char *at, size_t max)
{
    size_t len = 0;
    while (len <= max && (unsigned char)at[len] > ' ' && (unsigned char)at[len] < 0x7f)
        len++;
    return len <= max && (at[len] == '\0' || strchr("\t \n", at[len])) ? len : 0;
}

static bool is_end_mark(const char *name, size_t len)
{
    return (len == 6 && !memcmp(name, "_etext", 6)) || (len == 10 && !memcmp(name, "_einittext", 10));
}

static bool is_code(char type)
{
    return type && strchr("tTwWi", type);
}

/* "ffffffffc0201000 t ext4_init\t[ext4]" */
static bool take_line(struct kallsyms *k, const char *at)
{
    uint64_t address;
    char type;
    if (!(at = take_address(at, &address)) || !(type = at[0]) || at[1] != ' ')
        return false;
    const char *name = at + 2;
    size_t len = name_length(name, KALLSYMS_NAME_MAX), module_len = 0;
    if (!len)
        return false;
    const char *module = name + len + strspn(name + len, "\t ");
    if (*module == '[') {
        module_len = strcspn(++module, "]\n");
        if (module[module_len] != ']' || !module_len || name_length(module, KALLSYMS_NAME_MAX) <= module_len)
            return false;
    }
    bool code = is_code(type) && (module_len || !is_end_mark(name, len));
    k->hidden += code && !address;
    if (!module_len && len == 6 && !memcmp(name, "_stext", 6))
        k->stext = address;
    if (address < HALF_OF_SPACE) /* offsets within something, or hidden: no place of its own */
        return true;
    struct kallsyms_symbol *s = vec_push(&k->all);
    s->address = address;
    s->global = type < 'a';
    s->module = module_len ? module_of(k, module, module_len) : 0;
    s->name = code ? store_text(k, name, len) : 0;
    return true;
}

/* "ext4 1064960 1 - Live 0xffffffffc0201000" */
static void take_module(struct kallsyms *k, const char *line, size_t line_len)
{
    size_t len = name_length(line, KALLSYMS_NAME_MAX);
    uint64_t bytes, begin;
    char copy[1024];
    const char *address = memmem(line, line_len, " 0x", 3);
    if (!len || !address || line_len >= sizeof(copy))
        return;
    memcpy(copy, line, line_len);
    copy[line_len] = '\0';
    size_t at = map_get(&k->by_module, line, len);
    if (at == MAP_NONE || sscanf(copy + len, " %" SCNu64, &bytes) != 1 ||
        sscanf(copy + (address - line), " 0x%" SCNx64, &begin) != 1)
        return;
    k->modules.at[at].begin = begin;
    k->modules.at[at].bytes = bytes;
}

/* ---- one for each address ---- */

/* A mark of the linker's, a tracepoint's or the build's, which nobody calls a function by. */
static bool is_mark(const char *name)
{
    static const char *const heads[] = {"__pfx_",       "__cfi_", "__pi_", "__traceiter_",
                                        "__probestub_", ".",      "$"};
    static const char *const whole[] = {"_text", "_stext", "_sinittext"};
    for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
        if (text_starts(name, heads[i]))
            return true;
    for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
        if (!strcmp(name, whole[i]))
            return true;
    return text_starts(name, "_") &&
           (text_ends(name, "_start") || text_ends(name, "_end") || text_ends(name, "_begin"));
}

/* The one to call the place by: less than 0: a. */
static int compare_names(const struct kallsyms *k, const struct kallsyms_symbol *a,
                         const struct kallsyms_symbol *b)
{
    if (!a->name || !b->name)
        return !a->name - !b->name;
    if (a->gone != b->gone)
        return a->gone - b->gone;
    const char *x = k->texts.data + a->name, *y = k->texts.data + b->name;
    int order = is_mark(x) - is_mark(y);
    if (!order)
        order = b->global - a->global;
    if (!order)
        order = (int)strspn(x, "_") - (int)strspn(y, "_");
    if (!order)
        order = (int)strlen(x) - (int)strlen(y);
    return order ? order : strcmp(x, y);
}

static int by_address(const void *a, const void *b)
{
    const struct kallsyms_symbol *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

static void sort(struct kallsyms *k)
{
    bool sorted = true;
    size_t to = 0;
    for (size_t i = 1; i < k->all.len && sorted; i++) /* but for modules it mostly is */
        sorted = k->all.at[i - 1].address <= k->all.at[i].address;
    if (!sorted)
        qsort(k->all.at, k->all.len, sizeof(*k->all.at), by_address);
    for (size_t i = 0; i < k->all.len; i++) {
        struct kallsyms_symbol *last = to ? &k->all.at[to - 1] : NULL;
        if (!last || last->address != k->all.at[i].address)
            k->all.at[to++] = k->all.at[i];
        else if (compare_names(k, &k->all.at[i], last) < 0)
            *last = k->all.at[i];
    }
    k->all.len = to;
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

void kallsyms_parse(struct kallsyms *k, const char *symbols, const char *modules)
{
    *k = (struct kallsyms){.lines = 0};
    buf_addch(&k->texts, '\0'); /* so that no name begins at 0 */
    vec_push(&k->modules);      /* the kernel itself: "" */
    for (const char *line = symbols; *line; line = next_line(line)) {
        k->lines++;
        k->bad_lines += !take_line(k, line);
    }
    for (const char *line = modules, *end; *line; line = end)
        take_module(k, line, (size_t)((end = next_line(line)) - line));
    sort(k);
}

/* ---- finding ---- */

/* Of the first `len`, the last one that begins at the address or before it; KALLSYMS_NONE: none does. */
static size_t last_before(const struct kallsyms *k, size_t len, uint64_t address)
{
    size_t low = 0, high = len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (k->all.at[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : KALLSYMS_NONE;
}

size_t kallsyms_find(const struct kallsyms *k, uint64_t address)
{
    size_t at = last_before(k, k->all.len, address);
    if (at == KALLSYMS_NONE || !k->all.at[at].name)
        return KALLSYMS_NONE;
    const struct kallsyms_symbol *s = &k->all.at[at];
    const struct kallsyms_module *m = &k->modules.at[s->module];
    if (m->made && address / PACK_BYTES != s->address / PACK_BYTES)
        return KALLSYMS_NONE;
    if (m->bytes && s->address >= m->begin && address - m->begin >= m->bytes)
        return KALLSYMS_NONE;
    return at;
}

const char *kallsyms_without_mark(const char *name)
{
    static const char *const heads[] = {"__pfx_", "__cfi_"};
    for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
        if (text_starts(name, heads[i]) && name[strlen(heads[i])])
            name += strlen(heads[i]);
    return name;
}

uint64_t kallsyms_byte_of_frame(const struct kallsyms *k, uint64_t address)
{
    const size_t at = address ? kallsyms_find(k, address - 1) : KALLSYMS_NONE;
    const char *name = at == KALLSYMS_NONE ? "" : kallsyms_name(k, at);
    const bool begins = at != KALLSYMS_NONE && at + 1 < k->all.len && k->all.at[at + 1].address == address &&
                        k->all.at[at + 1].name;
    return begins && kallsyms_without_mark(name) != name ? address : address - 1;
}

/* Adds a symbol of an earlier table. False: there is no more room. */
static bool inherit(struct kallsyms *k, const struct kallsyms *earlier, size_t at)
{
    const struct kallsyms_symbol *old = &earlier->all.at[at];
    const struct kallsyms_module *m = &earlier->modules.at[old->module];
    const char *module = kallsyms_module_name(earlier, at), *name = kallsyms_name(earlier, at);
    uint16_t home = module_of(k, module, strlen(module));
    uint32_t text = store_text(k, name, strlen(name));
    if (!home || !text)
        return false;
    if (!k->modules.at[home].bytes) {
        k->modules.at[home].begin = m->begin;
        k->modules.at[home].bytes = m->bytes;
    }
    *vec_push(&k->all) = (struct kallsyms_symbol){
        .address = old->address, .name = text, .module = home, .global = old->global, .gone = true};
    return true;
}

void kallsyms_inherit(struct kallsyms *k, const struct kallsyms *earlier)
{
    size_t now = k->all.len;
    for (size_t i = 0; i < earlier->all.len && k->all.len - now < GONE_MAX; i++) {
        const struct kallsyms_symbol *old = &earlier->all.at[i];
        size_t same = last_before(k, now, old->address);
        if (!old->name || !old->module || (same != KALLSYMS_NONE && k->all.at[same].address == old->address))
            continue;
        if (!inherit(k, earlier, i))
            break;
    }
    if (k->all.len > now)
        sort(k);
}
