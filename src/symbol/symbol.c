/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/symbol.h"

#include "base/buf.h"
#include "symbol/cache.h"
#include "symbol/debuginfod_servers.h"
#include "symbol/module_files.h"
#include "symbol/symbol_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct module {
    bool wanted; /* its debug file has been asked for */
    struct symbol_image image;
    struct symbol_cache cache;
    bool cache_read;                            /* the file in cache_dir, if any, has been looked at */
    bool located;                               /* symbol_image_locate() gave 0 */
    int err;                                    /* else why not, when last tried: */
    char *tried_root;                           /* NULL: not tried */
    struct map unknown;                         /* address -> fallback */
    struct VEC(struct symbol_frame *) fallback; /* one frame each: "libfoo.so.1+0x1234" */
};

/* A debug file that servers may send, and the one it shares with others (dwz). */
struct wanted {
    size_t module;
    char *root;
    bool came, done;
    const unsigned char *alternate; /* build id; within the file that came */
    size_t alternate_len;
};

struct symbols {
    struct symbol_names names;
    struct symbol_servers *servers; /* NULL: none */
    size_t came;                    /* files from there that are in use */
    struct VEC(struct wanted) wanted;
    struct VEC(struct module *) retired; /* their frames have been handed out */
    char *cache_dir;                     /* NULL: none */
    struct map index;                    /* see module_key() -> modules */
    struct VEC(struct module *) modules;
};

struct symbols *symbols_new(const char *cache_dir)
{
    struct symbols *s = mem_alloc(sizeof(*s));
    s->cache_dir = cache_dir ? mem_strdup(cache_dir) : NULL;
    return s;
}

void symbols_use_servers(struct symbols *s, struct symbol_servers *servers)
{
    s->servers = servers;
}

static void free_module(struct module *m)
{
    vec_each (struct symbol_frame *, frame, &m->fallback)
        free(*frame);
    vec_release(&m->fallback);
    map_release(&m->unknown);
    symbol_cache_release(&m->cache);
    symbol_image_release(&m->image);
    free(m->tried_root);
    free(m);
}

void symbols_free(struct symbols *s)
{
    if (!s)
        return;
    symbols_save(s);
    vec_each (struct module *, m, &s->modules)
        free_module(*m);
    vec_each (struct module *, m, &s->retired)
        free_module(*m);
    vec_each (struct wanted, w, &s->wanted)
        free(w->root);
    vec_release(&s->modules);
    vec_release(&s->retired);
    vec_release(&s->wanted);
    map_release(&s->index);
    symbol_names_release(&s->names);
    free(s->cache_dir);
    free(s);
}

/**
 * Files in another root are a stranger's: whatever build id they claim, their names are no business of the next report.
 */
static bool is_strangers(const struct symbol_image *image)
{
    return (image->main && image->main->root[0]) || (image->debug && image->debug->root[0]);
}

void symbols_save(struct symbols *s)
{
    if (!s->cache_dir)
        return;
    vec_each (struct module *, each, &s->modules) {
        struct module *m = *each;
        if (m->cache.dirty && m->image.build_id_len && !m->image.partial && !is_strangers(&m->image))
            symbol_cache_save(&m->cache, s->cache_dir, m->image.build_id, m->image.build_id_len);
    }
}

/**
 * What makes two requests the same module: the build id, root and path; else the very file; else only how it was
 * called.
 */
static void module_key(struct buf *key, const struct symbol_module *module)
{
    const char *path = module->path ? module->path : "", *root = module->root ? module->root : "";
    struct symbol_identity identity;
    if (module->build_id_len) {
        buf_addch(key, 'b');
        buf_add(key, module->build_id, module->build_id_len);
        buf_add(key, root, strlen(root) + 1);
    } else if (path[0] == '/' && symbol_object_identify(root, path, &identity) == 0) {
        buf_addch(key, 'f');
        buf_add(key, &identity, sizeof(identity));
    } else {
        buf_addch(key, 'n');
        buf_addstr(key, root);
    }
    buf_add(key, path, strlen(path) + 1);
}

/** Its index in modules. */
static size_t find_module(struct symbols *s, const struct symbol_module *module)
{
    struct buf key = BUF_INIT;
    bool added;
    module_key(&key, module);
    size_t at = map_put(&s->index, key.data, key.len, s->modules.len, &added);
    buf_release(&key);
    if (!added)
        return at;
    struct module *m = mem_alloc(sizeof(*m));
    symbol_image_init(&m->image, module);
    *vec_push(&s->modules) = m;
    return at;
}

/** Tries again when another process's root may have the file. */
static void locate(struct module *m, const char *root)
{
    if (m->located || (m->tried_root && !strcmp(m->tried_root, root)))
        return;
    m->err = symbol_image_locate(&m->image, root);
    m->located = m->err == 0;
    free(m->tried_root);
    m->tried_root = mem_strdup(root);
}

static void read_cache(struct symbols *s, struct module *m, const char *root)
{
    if (m->cache_read)
        return;
    if (!m->image.build_id_len)
        locate(m, root);
    if (!m->image.build_id_len)
        return;
    m->cache_read = true;
    if (!s->cache_dir ||
        symbol_cache_load(&m->cache, s->cache_dir, m->image.build_id, m->image.build_id_len) != 0)
        return;
    if (!symbol_image_origin_holds(&m->image, root, &m->cache.origin))
        symbol_cache_release(&m->cache);
}

static bool knows_all(const struct module *m, const uint64_t *addresses, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!symbol_cache_find(&m->cache, addresses[i]))
            return false;
    return true;
}

void symbols_want(struct symbols *s, const struct symbol_module *module, const uint64_t *addresses, size_t n)
{
    if (!s->servers)
        return;
    size_t at = find_module(s, module);
    struct module *m = s->modules.at[at];
    const char *root = module->root ? module->root : "";
    if (m->wanted || m->image.path[0] != '/' || m->image.unusable)
        return;
    read_cache(s, m, root);
    if (m->cache.origin.kind != SYMBOL_ORIGIN_NONE && knows_all(m, addresses, n))
        return;
    locate(m, root);
    if (!m->image.build_id_len || !symbol_image_lacks_debug(&m->image, root))
        return;
    m->wanted = true;
    *vec_push(&s->wanted) = (struct wanted){.module = at, .root = mem_strdup(root)};
    symbol_servers_want(s->servers, m->image.build_id, m->image.build_id_len);
}

/** What was found without the file that has come is as if it had never been looked up. */
static struct module *replace(struct symbols *s, struct wanted *w)
{
    struct module *old = s->modules.at[w->module], *m = mem_alloc(sizeof(*m));
    const struct symbol_module same = {.path = old->image.path,
                                       .build_id = old->image.build_id,
                                       .build_id_len = old->image.build_id_len,
                                       .sent = old->image.sent};
    symbol_image_init(&m->image, &same);
    m->wanted = m->cache_read = true;
    locate(m, w->root);
    *vec_push(&s->retired) = old;
    return s->modules.at[w->module] = m;
}

static bool has_origin(const struct symbol_cache *c, const struct symbol_object *o)
{
    return c->origin.kind == SYMBOL_ORIGIN_SEPARATE && c->origin.size_bytes == o->size_bytes &&
           c->origin.mtime_ns == o->mtime_ns;
}

static void take_debug(struct symbols *s, struct wanted *w)
{
    struct module *m = s->modules.at[w->module];
    const char *path = symbol_servers_file(s->servers, m->image.build_id, m->image.build_id_len), *name;
    w->came = path != NULL;
    struct symbol_object *o = path ? symbol_debug_open(path, m->image.build_id, m->image.build_id_len) : NULL;
    w->done = path && !o;
    if (!o)
        return;
    if (m->image.table || (m->cache.entries.len && !has_origin(&m->cache, o)))
        m = replace(s, w);
    if (m->image.debug) { /* one was installed meanwhile */
        symbol_object_free(o);
        w->done = true;
        return;
    }
    m->image.debug = o;
    m->located = true;
    s->came++;
    w->alternate_len = symbol_object_alternate(o, &name, &w->alternate);
    if (w->alternate_len)
        m->image.alternate = symbol_debug_find_alternate(o, name, w->alternate, w->alternate_len);
    w->done = !w->alternate_len || m->image.alternate;
    if (!w->done)
        symbol_servers_want(s->servers, w->alternate, w->alternate_len);
}

static void take_alternate(struct symbols *s, struct wanted *w)
{
    struct module *m = s->modules.at[w->module];
    const char *path = symbol_servers_file(s->servers, w->alternate, w->alternate_len);
    if (!path)
        return;
    m->image.alternate = symbol_debug_open(path, w->alternate, w->alternate_len);
    w->done = true;
    s->came++;
}

void symbols_fetch(struct symbols *s)
{
    if (!s->servers || !s->wanted.len)
        return;
    symbol_servers_wait(s->servers);
    vec_each (struct wanted, w, &s->wanted)
        if (!w->done && !w->came)
            take_debug(s, w);
    symbol_servers_wait(s->servers); /* for what those refer to */
    vec_each (struct wanted, w, &s->wanted)
        if (!w->done && w->came)
            take_alternate(s, w);
}

size_t symbols_came(const struct symbols *s)
{
    return s->came;
}

bool symbols_pending(struct symbols *s)
{
    symbols_fetch(s);
    return s->servers && symbol_servers_pending(s->servers);
}

static int compare_addresses(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

struct addresses VEC(uint64_t);

/** In ascending order, so that one unit's addresses come together. */
static void look_up(struct symbols *s, struct module *m, const char *root, struct addresses *missing)
{
    locate(m, root);
    if (!m->located || !missing->len)
        return;
    symbol_image_load(&m->image, root, &s->names);
    m->cache.origin = m->image.origin;
    qsort(missing->at, missing->len, sizeof(*missing->at), compare_addresses);
    struct symbol_frame_list frames = {0};
    for (size_t i = 0; i < missing->len; i++) {
        if (i && missing->at[i] == missing->at[i - 1])
            continue;
        frames.len = 0;
        symbol_image_find(&m->image, missing->at[i], &frames);
        symbol_cache_add(&m->cache, missing->at[i], frames.at, frames.len);
    }
    vec_release(&frames);
}

static struct symbol_frames get_fallback(struct symbols *s, struct module *m, uint64_t address)
{
    bool added;
    size_t at = map_put_u64(&m->unknown, address, m->fallback.len, &added);
    if (added) {
        const char *path = m->image.path, *slash = strrchr(path, '/');
        struct buf name = BUF_INIT;
        if (path[0] == '/' && slash[1])
            path = slash + 1;
        buf_printf(&name, "%s+0x%llx", path[0] ? path : "[unknown]", (unsigned long long)address);
        struct symbol_frame *frame = mem_alloc(sizeof(*frame));
        frame->function = symbol_names_store(&s->names, buf_str(&name));
        *vec_push(&m->fallback) = frame;
        buf_release(&name);
    }
    return (struct symbol_frames){m->fallback.at[at], 1};
}

int symbols_resolve(struct symbols *s, const struct symbol_module *module, const uint64_t *addresses,
                    size_t n, struct symbol_frames *out)
{
    size_t at = find_module(s, module); /* first: it may move the array */
    struct module *m = s->modules.at[at];
    const char *root = module->root ? module->root : "";
    struct addresses missing = {0};
    read_cache(s, m, root);
    for (size_t i = 0; i < n; i++)
        if (!symbol_cache_find(&m->cache, addresses[i]))
            *vec_push(&missing) = addresses[i];
    if (missing.len)
        look_up(s, m, root, &missing);
    int err = missing.len && !m->located ? m->err : 0;
    for (size_t i = 0; i < n; i++) {
        const struct symbol_cache_entry *e = symbol_cache_find(&m->cache, addresses[i]);
        out[i] = e && e->len ? (struct symbol_frames){e->frames, e->len} : get_fallback(s, m, addresses[i]);
    }
    vec_release(&missing);
    return err;
}
