/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/ledger/profile_names.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sigsafe/str.h"

#define DELETED " (deleted)"

static size_t parse_hex(const char *hex, unsigned char *out, size_t max)
{
    size_t n = 0;
    for (; n < max && hex[2 * n] && hex[2 * n + 1]; n++) {
        char pair[3] = {hex[2 * n], hex[2 * n + 1], 0};
        out[n] = (unsigned char)strtoul(pair, NULL, 16);
    }
    return n;
}

static void add_lines(struct profile *p, struct profile_location *l, const struct symbol_frames *frames)
{
    l->first_line = (uint32_t)p->lines.len;
    l->n_lines = (uint32_t)frames->len;
    for (size_t i = 0; i < frames->len; i++) {
        const struct symbol_frame *f = &frames->at[i];
        struct profile_line line = {.function = profile_string(p, f->function),
                                    .file = profile_string(p, f->file),
                                    .line = f->line,
                                    .inlined = f->inlined};
        *vec_push(&p->lines) = line;
    }
}

/* One module's locations that have no name yet. */
struct unnamed {
    struct VEC(uint32_t) locations;
    uint64_t *addresses;
    char *path;
    unsigned char build_id[64];
    struct symbol_module module;
};

static void describe(struct unnamed *u, const struct profile *p, const char *root, uint32_t module)
{
    const struct profile_module *m = &p->modules.at[module];
    u->path = mem_strdup(profile_text(p, m->path));
    text_cut_end(u->path, DELETED);
    u->module = (struct symbol_module){.path = u->path, .root = root, .build_id = u->build_id};
    u->module.build_id_len = parse_hex(profile_text(p, m->build_id), u->build_id, sizeof(u->build_id));
}

static void gather(struct unnamed *u, const struct profile *p, const char *root, uint32_t module)
{
    *u = (struct unnamed){.path = NULL};
    for (uint32_t i = 0; i < p->locations.len; i++)
        if (p->locations.at[i].module == module && !p->locations.at[i].n_lines)
            *vec_push(&u->locations) = i;
    if (!u->locations.len)
        return;
    u->addresses = mem_array(u->locations.len, sizeof(*u->addresses));
    for (size_t i = 0; i < u->locations.len; i++) {
        const struct profile_location *l = &p->locations.at[u->locations.at[i]];
        u->addresses[i] = l->exact || !l->address ? l->address : l->address - 1;
    }
    describe(u, p, root, module);
}

static void release(struct unnamed *u)
{
    vec_release(&u->locations);
    free(u->addresses);
    free(u->path);
}

static void want_debug_file(struct symbols *symbols, const struct profile *p, const char *root,
                            uint32_t module)
{
    struct unnamed u;
    gather(&u, p, root, module);
    if (u.locations.len)
        symbols_want(symbols, &u.module, u.addresses, u.locations.len);
    release(&u);
}

static void name_module(struct symbols *symbols, struct profile *p, const char *root, uint32_t module)
{
    struct unnamed u;
    gather(&u, p, root, module);
    struct symbol_frames *frames = mem_array(u.locations.len, sizeof(*frames));
    if (u.locations.len)
        symbols_resolve(symbols, &u.module, u.addresses, u.locations.len, frames);
    for (size_t i = 0; i < u.locations.len; i++)
        add_lines(p, &p->locations.at[u.locations.at[i]], &frames[i]);
    free(frames);
    release(&u);
}

void profile_names_apply(struct symbols *symbols, struct profile *p, const char *root)
{
    for (uint32_t m = 0; m < p->modules.len; m++)
        want_debug_file(symbols, p, root, m);
    symbols_fetch(symbols);
    for (uint32_t m = 0; m < p->modules.len; m++)
        name_module(symbols, p, root, m);
}

struct symbol_calls *profile_names_calls(const struct profile *p, uint32_t module)
{
    struct unnamed u = {.path = NULL};
    describe(&u, p, "", module);
    struct symbol_calls *calls = symbol_calls_open(&u.module);
    release(&u);
    return calls;
}

char *profile_names_cache_dir(void)
{
    struct buf path = BUF_INIT;
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (base && base[0] == '/')
        buf_addstr(&path, base);
    else if (home && home[0] == '/')
        buf_printf(&path, "%s/.cache", home);
    else
        return NULL;
    mkdir(buf_str(&path), 0700);
    buf_addstr(&path, "/allium");
    mkdir(buf_str(&path), 0700);
    buf_addstr(&path, "/symbols");
    return buf_detach(&path);
}
