/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "collect/container.h"
#include "collect/ledger_dir.h"
#include "collect/tags.h"

/*
 * The place is inline code of <allium/malloc_hooks.h> most of the time: the frame meant is the first that is not one of its
 * functions, which are called as those that they stand for.
 */
static const struct symbol_frame *place_of(const struct symbol_frames *frames)
{
    size_t i = 0;
    while (i + 1 < frames->len && frames->at[i].inlined && frames->at[i].file &&
           strstr(frames->at[i].file, "allium/malloc_hooks.h"))
        i++;
    return &frames->at[i];
}

/* Function, and file and line where the program did not say them itself. */
static void name_row(struct tags_row *r, const struct symbol_frame *f)
{
    free(r->function);
    r->function = mem_strdup(f->function);
    if (*r->file)
        return;
    free(r->file);
    r->file = mem_strdup(f->file ? f->file : "");
    r->line = f->line;
}

/* All rows of one module; LEDGER_NONE: those of none. */
static void name_module(struct tags *t, uint32_t module, struct symbols *symbols, const char *root)
{
    const struct tags_module none = {.path = ""},
                             *of = module == LEDGER_NONE ? &none : &t->modules.at[module];
    struct symbol_module m = {
        .path = of->path, .root = root, .build_id = of->build_id, .build_id_len = of->build_id_len};
    struct VEC(struct tags_row *) rows = {0};
    vec_each (struct tags_row, r, &t->rows)
        if (r->of_module == module)
            *vec_push(&rows) = r;
    uint64_t *addresses = mem_array(rows.len + 1, sizeof(*addresses));
    struct symbol_frames *frames = mem_array(rows.len + 1, sizeof(*frames));
    for (size_t i = 0; i < rows.len; i++)
        addresses[i] = rows.at[i]->code;
    if (rows.len)
        symbols_resolve(symbols, &m, addresses, rows.len, frames);
    for (size_t i = 0; i < rows.len; i++)
        name_row(rows.at[i], place_of(&frames[i]));
    free(addresses);
    free(frames);
    vec_release(&rows);
}

static int explain_none(pid_t pid, struct error *e)
{
    if (kill(pid, 0) && errno == ESRCH)
        return error_set(e, ESRCH, "there is no process %d, and it has left no accounts of tags", pid);
    if (kill(pid, 0) && errno == EPERM)
        return error_set(
            e, EPERM,
            "process %d belongs to somebody else: its accounts can be read by that user and by root", pid);
    return error_set(
        e, ENOENT,
        "process %d has no accounts of tags: it is not built with <allium/tag.h> or malloc_hooks.h and "
        "linked with liballium, or no tag was used yet",
        pid);
}

/* The live one, else the one that was left last. */
static int copy_accounts(struct tags *t, pid_t pid, struct ledger_copy *c, struct error *e)
{
    struct ledger_list list = {0};
    const struct ledger_entry *found = NULL;
    int bad;
    ledger_dir_scan_tags(&list);
    vec_each (const struct ledger_entry, entry, &list)
        if (entry->pid == pid && (!found || entry->alive || (!found->alive && entry->inode > found->inode)))
            found = entry;
    if (found) {
        int fd = ledger_entry_open(found);
        t->alive = found->alive;
        bad = fd < 0 ? error_set(e, -fd, "%s: %s", found->path, strerror(-fd)) : ledger_copy_read(fd, c, e);
        if (fd >= 0)
            close(fd);
    } else {
        bad = explain_none(pid, e);
    }
    ledger_list_release(&list);
    return bad;
}

int tags_read(struct tags *t, pid_t pid, struct symbols *symbols, struct error *e)
{
    struct container_roots roots = {0};
    struct ledger_copy c;
    *t = (struct tags){.pid = pid};
    int bad = copy_accounts(t, pid, &c, e);
    if (bad)
        return bad;
    tags_from_copy(t, &c);
    ledger_copy_release(&c);
    const char *root = t->alive ? container_root(&roots, pid) : "";
    for (uint32_t m = 0; m < t->modules.len; m++)
        name_module(t, m, symbols, root);
    name_module(t, LEDGER_NONE, symbols, root);
    container_roots_release(&roots);
    tags_merge(t);
    return 0;
}
