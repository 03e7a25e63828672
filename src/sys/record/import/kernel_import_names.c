/* SPDX-License-Identifier: BSD-2-Clause */
/* What kernel_import.h calls a call, and what else of a trace has a name. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sys/record/import/kernel_import_parts.h"

#define UNKNOWN_NAME "[unknown]"
#define DOUBTFUL     " ?"                /* behind a call in one of several functions */
#define FUNCTION_MAX (UINT64_C(1) << 20) /* an address further behind a symbol is not in it */
#define CALLS_MAX    (1u << 18)
#define OTHER_NAME   "[other calls]"

#define GFP_UNKNOWN   1u
#define GFP_TEXTS_MAX 4096u

/* "f+0x4a/0x1c0 [ext4]" without the size of f. */
static void add_without_size(struct buf *b, const char *text, size_t len)
{
    const char *slash = memmem(text, len, "/0x", 3), *module = memmem(text, len, " [", 2);
    buf_add(b, text, slash ? (size_t)(slash - text) : module ? (size_t)(module - text) : len);
    if (module)
        buf_add(b, module, (size_t)(text + len - module));
}

/*
 * Hex alone, as "0x81234567", "ffffffff81234567" or "<ffffffff81234567>". Without "0x" at least eight digits
 * are wanted: a function may be called "add". */
static bool is_address(const char *text, uint64_t *out)
{
    const char *at = text + (*text == '<');
    const bool prefixed = at[0] == '0' && at[1] == 'x';
    const size_t digits = strspn(at + 2 * prefixed, "0123456789abcdef");
    const char *end = at + 2 * prefixed + digits;
    if ((!prefixed && digits < 8) || (*end && strcmp(end, ">") != 0))
        return false;
    *out = digits <= 16 ? strtoull(at, NULL, 16) : 0;
    return true;
}

static size_t find_symbol(const struct kallsyms *k, uint64_t address)
{
    return k && address ? kallsyms_find(k, kallsyms_byte_of_frame(k, address)) : KALLSYMS_NONE;
}

static void add_symbol(const struct kallsyms *k, struct buf *b, uint64_t address)
{
    const size_t at = find_symbol(k, address);
    if (at == KALLSYMS_NONE || address - k->all.at[at].address > FUNCTION_MAX)
        return;
    buf_addstr(b, kallsyms_name(k, at));
    if (address != k->all.at[at].address)
        buf_printf(b, "+0x%" PRIx64, address - k->all.at[at].address);
    if (*kallsyms_module_name(k, at))
        buf_printf(b, " [%s]", kallsyms_module_name(k, at));
}

/* "f+0x4a/0x1c0 [ext4]" has 0x1c0. */
static uint64_t size_in(const char *text)
{
    const char *slash = strstr(text, "/0x");
    return slash ? strtoull(slash + 3, NULL, 16) : 0;
}

static uint64_t size_of_symbol(const struct kallsyms *k, uint64_t address)
{
    const size_t at = find_symbol(k, address);
    return at == KALLSYMS_NONE ? 0 : kallsyms_bytes(k, at);
}

/* Where several functions have one name, calls in functions of different sizes are different calls. */
static bool add_key(const struct kernel_import *i, struct buf *key, const struct buf *shown, uint64_t bytes)
{
    const bool by_size = bytes && i->source && import_source_is_several(i->source, buf_str(shown));
    buf_addstr(key, buf_str(shown));
    if (by_size)
        buf_printf(key, "/0x%" PRIx64, bytes);
    return by_size;
}

/*
 * Calls that are shown as the same text are one, however the trace writes them. No kernel has as many as CALLS_MAX;
 * each takes 1.8 KB until the recording is written. The first number is that of all calls beyond.
 */
static uint64_t number_of_text(struct kernel_import *i, const struct buf *shown, uint64_t bytes,
                               uint64_t address)
{
    struct buf key = BUF_INIT;
    const bool by_size = add_key(i, &key, shown, bytes);
    size_t number = map_get(&i->text_index, buf_str(&key), key.len);
    if (number == MAP_NONE && i->calls.len > CALLS_MAX) {
        number = OTHER_CALLS;
    } else if (number == MAP_NONE) {
        number = map_put(&i->text_index, buf_str(&key), key.len, i->calls.len, NULL);
        *vec_push(&i->calls) =
            (struct call){mem_strdup(buf_str(shown)), .bytes = bytes, .address = address, .by_size = by_size};
    } else if (!i->calls.at[number].bytes) {
        i->calls.at[number].bytes = bytes;
    }
    buf_release(&key);
    return number;
}

uint64_t kernel_import_call(struct kernel_import *i, const char *text, size_t len)
{
    size_t number = map_get(&i->call_index, text, len);
    if (number != MAP_NONE)
        return number;
    struct buf raw = BUF_INIT, shown = BUF_INIT;
    uint64_t address = 0, bytes;
    buf_add(&raw, text, len);
    if (is_address(buf_str(&raw), &address)) {
        add_symbol(i->symbols, &shown, address);
        bytes = size_of_symbol(i->symbols, address);
    } else {
        address = 0;
        add_without_size(&shown, buf_str(&raw), len);
        bytes = size_in(buf_str(&raw));
    }
    number = number_of_text(i, &shown, bytes, address);
    if (i->call_index.len <= CALLS_MAX)
        map_put(&i->call_index, text, len, number, NULL);
    buf_release(&raw);
    buf_release(&shown);
    return number;
}

uint64_t kernel_import_call_at(struct kernel_import *i, uint64_t address)
{
    struct address_slot *slot = &i->addresses[(address ^ address >> 9) % ADDRESSES];
    if (slot->address == address && address)
        return slot->call;
    size_t number = map_get_u64(&i->address_index, address);
    if (number == MAP_NONE) {
        struct buf shown = BUF_INIT;
        add_symbol(i->symbols, &shown, address);
        number = number_of_text(i, &shown, size_of_symbol(i->symbols, address), address);
        if (i->address_index.len <= CALLS_MAX)
            map_put_u64(&i->address_index, address, number, NULL);
        buf_release(&shown);
    }
    *slot = (struct address_slot){address, number};
    return number;
}

const char *kernel_import_call_text(const struct kernel_import *i, uint64_t call)
{
    return i->calls.at[call].text;
}

static const char *text_of(const struct kernel_import *i, uint64_t call)
{
    const char *text = i->calls.at[call].text;
    return *text ? text : UNKNOWN_NAME;
}

/* FUNCTION_SEVERAL: nothing tells which of several functions the call is in. */
static enum function_found find_frames(const struct kernel_import *i, uint64_t call,
                                       struct symbol_frames *out)
{
    const struct call *c = &i->calls.at[call];
    if (c->place) {
        *out = (struct symbol_frames){c->place, 1};
        return FUNCTION_ONE;
    }
    return i->source && *c->text
               ? import_source_frames(i->source, i->symbols,
                                      &(struct import_call){c->text, c->bytes, c->address}, out)
               : FUNCTION_NONE;
}

static void add_call(void *arg, struct buf *b, uint64_t call)
{
    struct symbol_frames frames;
    buf_addstr(b, text_of(arg, call));
    if (find_frames(arg, call, &frames) == FUNCTION_SEVERAL)
        buf_addstr(b, DOUBTFUL);
}

static void add_function(void *arg, struct buf *b, uint64_t call)
{
    struct kernel_import *i = arg;
    const char *text = text_of(i, call), *module = strstr(text, " [");
    struct buf raw = BUF_INIT;
    buf_add(&raw, text, module ? strcspn(text, "+ ") : strcspn(text, "+"));
    const char *plain = symbol_names_function(&i->names, kallsyms_without_mark(buf_str(&raw)));
    buf_printf(b, "%s%s", plain ? plain : UNKNOWN_NAME, module ? module : "");
    buf_release(&raw);
}

static bool frames(void *arg, uint64_t call, struct symbol_frames *out)
{
    if (find_frames(arg, call, out) != FUNCTION_ONE)
        return false;
    kernel_source_skip_headers(out);
    return true;
}

static const char *frame_file(void *arg, const struct symbol_frame *f)
{
    const struct kernel_import *i = arg;
    return i->source ? kernel_source_file(i->source, f) : f->file;
}

static void add_file(void *arg, struct buf *b, uint64_t call)
{
    const struct kernel_import *i = arg;
    struct symbol_frames found;
    const enum function_found how = find_frames(i, call, &found);
    if (how == FUNCTION_ONE) {
        kernel_source_skip_headers(&found);
        const char *file = frame_file(arg, found.at);
        if (file) {
            buf_addstr(b, file);
            return;
        }
    }
    buf_addstr(b, UNKNOWN_NAME);
    if (!*i->calls.at[call].text)
        return;
    buf_addch(b, ' ');
    add_function(arg, b, call);
    buf_addstr(b, how == FUNCTION_SEVERAL ? DOUBTFUL : "");
}

static uint64_t number(void *arg, uint64_t call)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    const struct kernel_import *i = arg;
    if (!*i->calls.at[call].text)
        return 0;
    for (const char *at = i->calls.at[call].text; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    if (i->calls.at[call].by_size)
        hash = (hash ^ i->calls.at[call].bytes) * UINT64_C(0x100000001b3);
    if (i->calls.at[call].place)
        hash = (hash ^ call) * UINT64_C(0x100000001b3);
    return hash >> 8;
}

static void add_gfp(void *arg, struct buf *b, uint64_t gfp)
{
    const struct kernel_import *i = arg;
    gfp_format(&i->gfp, gfp, b);
}

void kernel_import_use_gfp(struct kernel_import *i, const char *format)
{
    const struct gfp_bits none = {0};
    const int bad = i->gfp.all.len ? 0 : gfp_from_format(&i->gfp, format, &none);
    i->counts.unnumbered_gfp |= bad == -EPROTO;
    if (i->gfp.all.len)
        i->capture.names.add_gfp = add_gfp;
}

static void add_gfp_text(void *arg, struct buf *b, uint64_t gfp)
{
    const struct kernel_import *i = arg;
    buf_addstr(b, i->gfp_texts.at[gfp]);
}

/* A kernel has some hundred combinations. The first numbers are those of 0, as elsewhere, and of all beyond. */
uint64_t kernel_import_gfp(struct kernel_import *i, const char *names, size_t len)
{
    static const char none[] = "none";
    if (!i->gfp_texts.len) {
        map_put(&i->gfp_index, none, strlen(none), 0, NULL);
        *vec_push(&i->gfp_texts) = mem_strdup(none);
        *vec_push(&i->gfp_texts) = mem_strdup(UNKNOWN_NAME);
        i->capture.names.add_gfp = add_gfp_text;
    }
    if (!len)
        return GFP_UNKNOWN;
    uint32_t *lately = &i->gfp_lately[len % GFP_SLOTS];
    const char *same = i->gfp_texts.at[*lately];
    if (*lately && strlen(same) == len && !memcmp(same, names, len))
        return *lately;
    size_t number = map_get(&i->gfp_index, names, len);
    if (number == MAP_NONE && i->gfp_texts.len > GFP_TEXTS_MAX)
        return GFP_UNKNOWN;
    if (number == MAP_NONE) {
        number = map_put(&i->gfp_index, names, len, i->gfp_texts.len, NULL);
        *vec_push(&i->gfp_texts) = mem_strndup(names, len);
    }
    *lately = (uint32_t)number;
    return number;
}

static const char *migrate_type(void *arg, uint32_t type)
{
    const struct kernel_import *i = arg;
    return type < TYPES && *i->types[type] ? i->types[type] : NULL;
}

uint32_t kernel_import_type(struct kernel_import *i, const char *name)
{
    uint32_t n = 0;
    while (n < TYPES && *i->types[n] && strcasecmp(i->types[n], name) != 0)
        n++;
    if (n == TYPES || !*name || strlen(name) >= TYPE_NAME)
        return PAGE_EVENT_NO_TYPE;
    for (size_t k = 0; k <= strlen(name); k++)
        i->types[n][k] = (char)tolower((unsigned char)name[k]);
    i->capture.names.migrate_type = migrate_type;
    return n;
}

/* "Node    0, zone      DMA, type    Unmovable ...": each zone has a line for each type, in the order of numbers. */
void kernel_import_use_types(struct kernel_import *i, const char *pagetypeinfo)
{
    static const char before[] = ", type ";
    uint32_t n = 0;
    for (const char *at = strstr(pagetypeinfo, before); at && n < TYPES; at = strstr(at, before)) {
        at += strlen(before);
        at += strspn(at, " ");
        const size_t len = strcspn(at, " \n");
        if (len >= TYPE_NAME || (n && !strncasecmp(i->types[0], at, len) && !i->types[0][len]))
            break;
        for (size_t k = 0; k < len; k++)
            i->types[n][k] = (char)tolower((unsigned char)at[k]);
        i->types[n++][len] = '\0';
    }
    if (n)
        i->capture.names.migrate_type = migrate_type;
}

void kernel_import_use_symbols(struct kernel_import *i, const struct kallsyms *symbols)
{
    i->symbols = symbols;
}

static void use_files(struct kernel_import *i, bool known)
{
    i->capture.names.add_file = known ? add_file : NULL;
    i->capture.names.frames = known ? frames : NULL;
    i->capture.names.frame_file = known ? frame_file : NULL;
}

void kernel_import_use_source(struct kernel_import *i, struct kernel_source *source)
{
    i->source = source;
    use_files(i, source != NULL);
}

uint64_t kernel_import_place(struct kernel_import *i, const struct symbol_frame *place, const char *module)
{
    struct buf text = BUF_INIT;
    struct symbol_frame *own = mem_alloc(sizeof(*own));
    *own = (struct symbol_frame){
        .function = mem_strdup(place->function), .file = mem_strdup(place->file), .line = place->line};
    buf_printf(&text, *module ? "%s [%s]" : "%s", place->function, module);
    *vec_push(&i->calls) = (struct call){.text = buf_detach(&text), .place = own};
    use_files(i, true);
    return i->calls.len - 1;
}

void kernel_import_init_names(struct kernel_import *i)
{
    struct buf other = BUF_INIT;
    buf_addstr(&other, OTHER_NAME);
    number_of_text(i, &other, 0, 0);
    buf_release(&other);
    kernel_capture_init(&i->capture,
                        &(struct kernel_code_names){
                            .arg = i, .add_call = add_call, .add_function = add_function, .number = number});
}
