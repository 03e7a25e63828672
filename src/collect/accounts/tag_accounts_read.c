/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hash_map.h"
#include "base/mem.h"
#include "base/sigsafe/clock_ns.h"
#include "collect/accounts/tag_accounts.h"
#include "collect/accounts/tags_calls.h"
#include "collect/accounts/tags_file.h"
#include "collect/ledger/ledger_scan.h"
#include "collect/ledger/ledger_seal.h"
#include "collect/process/container.h"

/*
 * Returns whether the frame is inline code of <allium/malloc_hooks.h> or of a standard library. Most tags lie in such
 * code; their place is the first frame that is not.
 */
static bool passes_on(const struct symbol_frame *f)
{
    static const char *const headers[] = {"allium/malloc_hooks.h", "/bits/stdio.h", "/bits/stdio2.h",
                                          "/bits/stdlib.h",        "/include/c++/", NULL};
    for (const char *const *h = headers; f->inlined && f->file && *h; h++)
        if (strstr(f->file, *h))
            return true;
    return false;
}

static const struct symbol_frame *place_of(const struct symbol_frames *frames)
{
    size_t i = 0;
    while (i + 1 < frames->len && passes_on(&frames->at[i]))
        i++;
    return &frames->at[i];
}

/* Returns whether `own`, a relative path as it was given to the compiler, may be the file `whole`, an absolute path of
 * the debug information: the names after the last slash are equal. */
static bool is_same_file(const char *own, const char *whole)
{
    const char *a = strrchr(own, '/'), *b = whole ? strrchr(whole, '/') : NULL;
    return b && *whole == '/' && *own != '/' && !strcmp(a ? a + 1 : own, b + 1);
}

/* Sets the function. Sets file and line if the tag has no file; completes the path if it has one. */
static void name_row(void *arg, struct account_row *row, const struct symbol_frames *frames)
{
    struct alloc_texts *texts = arg;
    struct account_key *key = &row->key;
    const struct symbol_frame *f = place_of(frames);
    if (*f->function)
        key->function = alloc_texts_put_string(texts, f->function);
    if (key->file && is_same_file(alloc_texts_get(texts, key->file), f->file))
        key->file = alloc_texts_put_string(texts, f->file);
    if (key->file)
        return;
    if (f->file && *f->file)
        key->file = alloc_texts_put_string(texts, f->file);
    key->line = f->line;
}

/* Names all rows of one module; LEDGER_NONE: code outside every module. */
static void name_module(struct tags_reading *r, uint32_t module, struct symbols *symbols, const char *root,
                        struct alloc_texts *texts)
{
    const struct account_module none = {.path = ""},
                                *of = module == LEDGER_NONE ? &none : &r->modules.at[module];
    struct symbol_module m = {
        .path = of->path, .root = root, .build_id = of->build_id, .build_id_len = of->build_id_len};
    account_modules_name(&r->rows, r->module.at, module, &m, 0, symbols, name_row, texts);
}

static struct account_row row_of_tag(const struct tags_file_tag *tag, const char *module,
                                     struct alloc_texts *texts)
{
    return (struct account_row){
        .key = {.class = alloc_texts_put_string(texts, tag->class),
                .name = alloc_texts_put_string(texts, tag->name),
                .file = alloc_texts_put_string(texts, tag->file),
                .line = tag->line,
                .module = alloc_texts_put_string(texts, module)},
        .copies = 1,
        .code = tag->code,
    };
}

/* Returns whether the file is the one that was loaded, as far as build ids tell. */
static bool is_loaded_one(const struct tags_file *f, const struct account_module *m)
{
    return !m->build_id_len ||
           (f->build_id_len == m->build_id_len && !memcmp(f->build_id, m->build_id, m->build_id_len));
}

/* Adds the tags in the module's file that were never called. A file that cannot be read, or that has been replaced
 * since it was loaded, adds nothing. */
static void add_unmet(struct tags_reading *r, uint32_t module, struct alloc_texts *texts)
{
    struct account_module *m = &r->modules.at[module];
    struct map known = {0};
    struct tags_file f;
    struct error e;
    if (tags_file_open(&f, m->path, &e))
        return;
    if (!is_loaded_one(&f, m)) {
        tags_file_release(&f);
        return;
    }
    for (size_t i = 0; i < r->key.len; i++)
        map_put_u64(&known, r->key.at[i], i, NULL);
    vec_each (const struct tags_file_tag, tag, &f.tags) {
        bool added;
        uint64_t key = m->build_id_len ? ledger_action_key(m->build_id, m->build_id_len, tag->code)
                                       : ledger_action_key(m->path, strlen(m->path), tag->code);
        size_t row = map_put_u64(&known, key, r->key.len, &added);
        if (!added) {
            r->filed.at[row] = true;
            continue;
        }
        *vec_push(&r->module) = module;
        *vec_push(&r->key) = key;
        *vec_push(&r->account) = 0;
        *vec_push(&r->filed) = true;
        *vec_push(&r->rows) = row_of_tag(tag, m->path, texts);
        r->rows.at[r->rows.len - 1].key.comm = alloc_texts_put_string(texts, r->process.comm);
    }
    m->whole = true;
    map_release(&known);
    tags_file_release(&f);
}

int tags_read_places(struct tags_reading *r, struct alloc_texts *texts, int fd, struct symbols *symbols,
                     const char *root, struct error *e)
{
    struct ledger_copy c;
    int bad = ledger_copy_read(fd, &c, e);
    if (bad)
        return bad;
    r->process.taken_ns = clock_ns(CLOCK_REALTIME);
    tags_from_copy(r, &c, texts);
    ledger_copy_release(&c);
    /* Files in another root are opened for names only, and with care. */
    for (uint32_t m = 0; r->unmet && !*root && m < r->modules.len; m++)
        add_unmet(r, m, texts);
    for (uint32_t m = 0; symbols && m < r->modules.len; m++)
        name_module(r, m, symbols, root, texts);
    if (symbols)
        name_module(r, LEDGER_NONE, symbols, root, texts);
    return 0;
}

static int read_file(struct accounts *a, struct alloc_texts *texts, int fd, struct tags_reading *r,
                     struct symbols *symbols, const char *root, struct error *e)
{
    int bad = tags_read_places(r, texts, fd, symbols, root, e);
    if (bad)
        return bad;
    vec_each (struct account_row, row, &r->rows) {
        row->key.pid = (uint32_t)r->process.pid;
        *vec_push(&a->rows) = *row;
    }
    *vec_push(&a->processes) = r->process;
    tags_reading_release(r);
    accounts_merge(a, texts);
    return 0;
}

int tags_read_file(struct accounts *a, struct alloc_texts *texts, int fd, pid_t pid, bool alive,
                   struct symbols *symbols, const char *root, struct error *e)
{
    struct tags_reading r = {.process = {.pid = pid, .alive = alive}};
    return read_file(a, texts, fd, &r, symbols, root, e);
}

static int explain_none(pid_t pid, bool unreadable, struct error *e)
{
    int bad = ledger_scan_explain(pid, unreadable, "accounts of tags", e);
    if (bad)
        return bad;
    return error_set(
        e, ENOENT,
        "process %d has no accounts of tags: it is not built with <allium/tag.h> or malloc_hooks.h and "
        "linked with liballium, or no tag was used yet",
        pid);
}

int tags_open(struct tags_source *s, pid_t pid, struct error *e)
{
    struct ledger_scan scan;
    *s = (struct tags_source){.fd = -1, .root = ""};
    ledger_scan_process(&scan, pid);
    const struct ledger_entry *found = ledger_scan_latest(&scan.tags);
    int bad = found ? 0 : ledger_scan_unread(&scan, e);
    if (!found && !bad)
        bad = explain_none(pid, scan.unreadable, e);
    if (found) {
        s->fd = ledger_entry_open(found);
        s->alive = found->alive;
        if (s->fd >= 0)
            ledger_seal_opened(found, s->fd);
        bad = s->fd < 0 ? error_set(e, -s->fd, "the accounts of process %d cannot be read: %s", pid,
                                    strerror(-s->fd))
                        : 0;
    }
    if (!bad && s->alive)
        s->root = container_root(&s->roots, pid);
    ledger_scan_release(&scan);
    if (bad)
        tags_close(s);
    return bad;
}

void tags_close(struct tags_source *s)
{
    if (s->fd >= 0)
        close(s->fd);
    container_roots_release(&s->roots);
}

int tags_read(struct accounts *a, struct alloc_texts *texts, pid_t pid, const struct object_faults *faults,
              struct symbols *symbols, struct error *e)
{
    struct tags_reading r = {.process = {.pid = pid}, .faults = faults};
    struct tags_source s;
    int bad = tags_open(&s, pid, e);
    if (bad)
        return bad;
    r.process.alive = s.alive;
    bad = read_file(a, texts, s.fd, &r, symbols, s.root, e);
    tags_close(&s);
    return bad;
}

int tags_find_objects(struct object_lookup_where *where, pid_t pid, struct error *e)
{
    struct tags_source s;
    int bad = tags_open(&s, pid, e);
    if (bad)
        return bad;
    bad = object_lookup_find(where, s.fd, true, pid, s.alive, e);
    tags_close(&s);
    return bad;
}

int tags_read_binary(struct accounts *a, struct alloc_texts *texts, const char *path, struct symbols *symbols,
                     struct error *e)
{
    struct tags_reading r = {0};
    struct tags_file f;
    int bad = tags_file_open(&f, path, e);
    if (bad)
        return bad;
    char *whole = realpath(path, NULL);
    *vec_push(&r.modules) = (struct account_module){.path = mem_strdup(whole ? whole : path)};
    free(whole);
    tags_calls_add(&f, &(struct symbol_module){.path = r.modules.at[0].path});
    vec_each (const struct tags_file_tag, tag, &f.tags) {
        *vec_push(&r.module) = 0;
        *vec_push(&r.rows) = row_of_tag(tag, r.modules.at[0].path, texts);
    }
    name_module(&r, 0, symbols, "", texts);
    vec_each (const struct account_row, row, &r.rows)
        *vec_push(&a->rows) = *row;
    *vec_push(&a->processes) =
        (struct account_process){.losses = {[ACCOUNT_LOST_RECORDS] = f.not_understood}};
    tags_file_release(&f);
    tags_reading_release(&r);
    accounts_merge(a, texts);
    return 0;
}
