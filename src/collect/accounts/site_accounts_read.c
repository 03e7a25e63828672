/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/accounts/site_accounts.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "collect/accounts/site_names.h"
#include "collect/ledger/ledger_scan.h"
#include "collect/process/container.h"
#include "collect/process/proc.h"

/* The data that name_row() needs. */
struct namer {
    struct symbols *symbols;
    const struct wrappers *wrappers;
    struct alloc_texts *texts;
    struct symbol_module module;
    struct symbol_calls *calls; /* of the module; NULL: not opened yet, or cannot be opened */
    bool opened;
    const struct sites_reading *reading;
};

static const struct symbol_calls *calls_of(struct namer *n)
{
    if (!n->opened)
        n->calls = symbol_calls_open(&n->module);
    n->opened = true;
    return n->calls;
}

static void name_row(void *arg, struct account_row *row, const struct symbol_frames *frames)
{
    struct namer *n = arg;
    const bool by_wrapper = n->reading->by_wrapper.at[row - n->reading->rows.at];
    site_names_put(row, frames, by_wrapper, row->key.class ? NULL : calls_of(n), n->wrappers, n->texts);
}

static void name_module(struct sites_reading *r, uint32_t module, struct namer *n)
{
    const struct account_module *of = &r->modules.at[module];
    n->module.path = of->path;
    n->module.build_id = of->build_id;
    n->module.build_id_len = of->build_id_len;
    n->opened = false;
    n->calls = NULL;
    n->reading = r;
    account_modules_name(&r->rows, r->module.at, module, &n->module, 1, n->symbols, name_row, n);
    symbol_calls_free(n->calls);
}

static int explain_unkept(const struct sites_reading *r, struct error *e)
{
    if (!r->kept)
        return error_set(e, ENOENT,
                         "process %d has no accounts of call sites: start it with allium run --sites, or "
                         "with the variables of allium env --sites",
                         r->process.pid);
    return error_set(
        e, ENOENT,
        "process %d cannot keep accounts of call sites: its address space is limited (ulimit -v), "
        "or counted as memory (vm.overcommit_memory=2), or it is under seccomp",
        r->process.pid);
}

static int read_places(int fd, struct sites_reading *r, struct namer *n, struct error *e)
{
    struct ledger_copy c;
    int bad = ledger_copy_read(fd, &c, e);
    if (bad)
        return bad;
    sites_from_copy(r, &c, n->texts);
    ledger_copy_release(&c);
    if (!r->kept || r->unfollowed)
        bad = explain_unkept(r, e);
    for (uint32_t m = 0; !bad && m < r->modules.len; m++)
        name_module(r, m, n);
    vec_each (struct account_row, row, &r->rows)
        row->key.pid = (uint32_t)r->process.pid;
    return bad;
}

int sites_read_places(struct sites_reading *r, struct alloc_texts *texts, int fd, struct symbols *symbols,
                      const struct wrappers *wrappers, const char *root, struct error *e)
{
    struct namer n = {.symbols = symbols, .wrappers = wrappers, .texts = texts, .module = {.root = root}};
    return read_places(fd, r, &n, e);
}

static int read_file(struct accounts *a, int fd, struct sites_reading *r, struct namer *n, struct error *e)
{
    int bad = read_places(fd, r, n, e);
    vec_each (const struct account_row, row, &r->rows)
        *vec_push(&a->rows) = *row;
    if (!bad)
        *vec_push(&a->processes) = r->process;
    sites_reading_release(r);
    accounts_merge(a, n->texts);
    return bad;
}

int sites_read_file(struct accounts *a, struct alloc_texts *texts, int fd, pid_t pid, bool alive,
                    struct symbols *symbols, const struct wrappers *wrappers, const char *root,
                    struct error *e)
{
    struct sites_reading r = {.process = {.pid = pid, .alive = alive}};
    struct namer n = {.symbols = symbols, .wrappers = wrappers, .texts = texts, .module = {.root = root}};
    return read_file(a, fd, &r, &n, e);
}

static int explain_none(pid_t pid, bool unreadable, struct error *e)
{
    int bad = ledger_scan_explain(pid, unreadable, "ledger", e);
    if (bad)
        return bad;
    if (proc_has_agent(pid))
        return error_set(e, ENOENT, "process %d has allocated nothing yet", pid);
    return error_set(
        e, ENOENT,
        "process %d is not observed: restart it under allium run --sites, or with the environment that "
        "allium env --sites prints",
        pid);
}

int sites_open(pid_t pid, bool *alive, struct error *e)
{
    struct ledger_scan scan;
    ledger_scan_process(&scan, pid);
    const struct ledger_entry *found = ledger_scan_latest(&scan.list);
    int fd = found ? ledger_entry_open(found) : explain_none(pid, scan.unreadable, e);
    if (found && fd < 0)
        error_set(e, -fd, "the ledger of process %d: %s", pid, strerror(-fd));
    *alive = found && found->alive;
    ledger_scan_release(&scan);
    return fd;
}

int sites_read(struct accounts *a, struct alloc_texts *texts, pid_t pid, const struct object_faults *faults,
               struct symbols *symbols, const struct wrappers *wrappers, struct error *e)
{
    struct container_roots roots = {0};
    struct sites_reading r = {.process = {.pid = pid}, .faults = faults};
    struct namer n = {.symbols = symbols, .wrappers = wrappers, .texts = texts};
    int fd = sites_open(pid, &r.process.alive, e);
    if (fd < 0)
        return fd;
    n.module.root = r.process.alive ? container_root(&roots, pid) : "";
    int bad = read_file(a, fd, &r, &n, e);
    close(fd);
    container_roots_release(&roots);
    return bad;
}

int sites_find_objects(struct object_lookup_where *where, pid_t pid, struct error *e)
{
    bool alive;
    int fd = sites_open(pid, &alive, e);
    if (fd < 0)
        return fd;
    int bad = object_lookup_find(where, fd, false, pid, alive, e);
    close(fd);
    return bad;
}
