/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/symbol_names.h"

#include "base/buf.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

#include <libiberty/demangle.h>

/* Substitutions in a mangled name can make its text grow as 2^n: longer ones stay as they are. */
#define NAME_MAX_BYTES 16384

void symbol_names_release(struct symbol_names *n)
{
    vec_each (char *, text, &n->kept)
        free(*text);
    vec_release(&n->kept);
    map_release(&n->by_text);
    map_release(&n->by_symbol);
    map_release(&n->by_path);
}

static size_t store_text(struct symbol_names *n, const char *text, size_t len)
{
    bool added;
    size_t at = map_put(&n->by_text, text, len, n->kept.len, &added);
    if (!added)
        return at;
    char *copy = mem_strndup(text, len);
    for (char *c = copy; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?';
    *vec_push(&n->kept) = copy;
    return at;
}

const char *symbol_names_store(struct symbol_names *n, const char *text)
{
    size_t at = store_text(n, text, strlen(text)); /* first: it may move the array */
    return n->kept.at[at];
}

static bool is_one_of(const char *const *words, const char *part, size_t len)
{
    for (; *words; words++)
        if (len == strlen(*words) && !memcmp(part, *words, len))
            return true;
    return false;
}

/** Length of raw[0..len) without its last ".clone" or ".clone.N"; len when it has none. */
static size_t cut_clone(const char *raw, size_t len)
{
    static const char *const bare[] = {"cold", "unlikely", "localalias", "cfi_jt", NULL};
    static const char *const numbered[] = {"part", "isra",     "constprop",  "cold",   "clone",
                                           "llvm", "lto_priv", "localalias", "__uniq", NULL};
    size_t digits = 0;
    while (digits < len && isdigit((unsigned char)raw[len - 1 - digits]))
        digits++;
    bool has_number = digits && digits < len && raw[len - 1 - digits] == '.';
    size_t end = has_number ? len - 1 - digits : len, dot = end;
    while (dot > 0 && raw[dot - 1] != '.')
        dot--;
    if (dot < 2 || !is_one_of(has_number ? numbered : bare, raw + dot, end - dot))
        return len;
    return dot - 1;
}

static size_t plain_length(const char *raw)
{
    size_t len = strlen(raw);
    const char *version = strchr(raw, '@');
    if (version && version > raw)
        len = (size_t)(version - raw);
    for (;;) {
        size_t shorter = cut_clone(raw, len);
        if (shorter == len)
            return len;
        len = shorter;
    }
}

struct demangling {
    char text[NAME_MAX_BYTES];
    size_t len;
    jmp_buf too_long;
};

static void take(const char *text, size_t len, void *opaque)
{
    struct demangling *d = opaque;
    if (len >= sizeof(d->text) - d->len)
        longjmp(d->too_long, 1);
    memcpy(d->text + d->len, text, len);
    d->len += len;
    d->text[d->len] = '\0';
}

/** The callback form writes no heap memory, so that leaving it by longjmp loses nothing. */
static bool demangle(struct demangling *d, const char *symbol)
{
    d->len = 0;
    if (setjmp(d->too_long))
        return false;
    if (symbol[0] != '_' || !symbol[1] || !strchr("ZRG", symbol[1]))
        return false;
    if (rust_demangle_callback(symbol, 0, take, d) && d->len)
        return true;
    d->len = 0;
    if (symbol[1] == 'R')
        return false;
    return cplus_demangle_v3_callback(symbol, DMGL_ANSI, take, d) && d->len;
}

static size_t make_readable(struct symbol_names *n, const char *raw)
{
    if (!strncmp(raw, "__GI_", 5) && raw[5])
        raw += 5;
    size_t len = plain_length(raw);
    if (len > NAME_MAX_BYTES)
        return store_text(n, raw, NAME_MAX_BYTES);
    char *plain = mem_strndup(raw, len);
    struct demangling *d = mem_alloc(sizeof(*d));
    size_t at;
    char *dlang = NULL;
    if (demangle(d, plain))
        at = store_text(n, d->text, d->len);
    else if (plain[0] == '_' && plain[1] == 'D' && len < 512 && (dlang = dlang_demangle(plain, 0)))
        at = store_text(n, dlang, strlen(dlang));
    else
        at = store_text(n, plain, len);
    free(dlang);
    free(d);
    free(plain);
    return at;
}

const char *symbol_names_function(struct symbol_names *n, const char *raw)
{
    if (!raw || !raw[0])
        return NULL;
    size_t len = strlen(raw);
    size_t at = map_get(&n->by_symbol, raw, len);
    if (at == MAP_NONE)
        at = map_put(&n->by_symbol, raw, len, make_readable(n, raw), NULL);
    return n->kept.at[at];
}

/** Adds one component to a path in progress; ".." takes the last one back where there is one to take. */
static void add_component(struct buf *path, const char *part, size_t len, size_t root)
{
    if (len == 0 || (len == 1 && part[0] == '.'))
        return;
    if (len == 2 && part[0] == '.' && part[1] == '.') {
        size_t cut = path->len;
        while (cut > root && path->data[cut - 1] != '/')
            cut--;
        bool climbs = path->len - cut == 2 && !memcmp(path->data + cut, "..", 2);
        if (path->len > root && !climbs) {
            path->len = cut > root ? cut - 1 : root;
            path->data[path->len] = '\0';
            return;
        }
        if (root)
            return;
    }
    if (path->len > root)
        buf_addch(path, '/');
    buf_add(path, part, len);
}

static size_t make_short(struct symbol_names *n, const char *raw)
{
    struct buf path = BUF_INIT;
    size_t root = raw[0] == '/';
    buf_add(&path, "/", root);
    while (*raw) {
        size_t len = strcspn(raw, "/");
        add_component(&path, raw, len, root);
        raw += len + (raw[len] == '/');
    }
    size_t at = store_text(n, buf_str(&path), path.len);
    buf_release(&path);
    return at;
}

const char *symbol_names_path(struct symbol_names *n, const char *dir, const char *raw)
{
    if (!raw || !raw[0] || !strcmp(raw, "???"))
        return NULL;
    struct buf joined = BUF_INIT;
    /* Reproducible builds shorten both to what looks alike: "./nptl" and "./nptl/x.c" or "../nptl/x.c". */
    if (raw[0] != '/' && dir && (dir[0] == '/' || !strncmp(raw, "../", 3))) {
        buf_printf(&joined, "%s/%s", dir, raw);
        raw = joined.data;
    }
    size_t len = strlen(raw);
    size_t at = map_get(&n->by_path, raw, len);
    if (at == MAP_NONE)
        at = map_put(&n->by_path, raw, len, make_short(n, raw), NULL);
    buf_release(&joined);
    return n->kept.at[at][0] ? n->kept.at[at] : NULL;
}
