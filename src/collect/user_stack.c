/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/user_stack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/container.h"
#include "collect/proc.h"

#define FILES_MAX     256   /* open ones; then all are closed */
#define ROOTS_MAX     65536 /* processes whose roots are remembered */
#define ANCESTORS_MAX 16
#define DELETED       " (deleted)"

struct user_stacks {
    struct spaces *spaces;
    struct container_roots roots;
    struct map of_process; /* {pid, its beginning} -> root_paths */
    struct VEC(const char *) root_paths;
    struct map of_file;
    struct VEC(struct codefile *) files; /* NULL: it cannot be had */
    struct VEC(struct chain_frame) chain;
};

struct user_stacks *user_stacks_new(struct spaces *spaces)
{
    struct user_stacks *u = mem_alloc(sizeof(*u));
    u->spaces = spaces;
    return u;
}

static void close_files(struct user_stacks *u)
{
    vec_each (struct codefile *, f, &u->files)
        codefile_free(*f);
    vec_release(&u->files);
    map_release(&u->of_file);
}

void user_stacks_free(struct user_stacks *u)
{
    if (!u)
        return;
    close_files(u);
    vec_release(&u->root_paths);
    map_release(&u->of_process);
    container_roots_release(&u->roots);
    vec_release(&u->chain);
    free(u);
}

/* Where its files are: its own root, else that of whoever forked it, for that is the best guess once it has ended. */
static const char *find_root(struct user_stacks *u, pid_t pid, uint64_t time_ns)
{
    struct spaces_process p;
    for (int i = 0; i < ANCESTORS_MAX && spaces_process(u->spaces, pid, time_ns, &p); i++) {
        if (!p.ended_ns)
            return container_root(&u->roots, pid);
        if (!p.parent_pid)
            break;
        pid = p.parent_pid;
        time_ns = p.began_ns;
    }
    return "";
}

static const char *root_of(struct user_stacks *u, pid_t pid, uint64_t time_ns)
{
    struct spaces_process p = {0};
    bool added;
    spaces_process(u->spaces, pid, time_ns, &p);
    uint64_t key[] = {(uint64_t)pid, p.image_ns};
    if (u->root_paths.len > ROOTS_MAX) {
        map_release(&u->of_process);
        u->root_paths.len = 0;
    }
    size_t at = map_put(&u->of_process, key, sizeof(key), u->root_paths.len, &added);
    if (added) {
        const char *root = find_root(u, pid, time_ns);
        *vec_push(&u->root_paths) = root;
    }
    return u->root_paths.at[at];
}

/* By its name in the root, by its name here, and without "deleted" behind it; at last by the kernel's link to what is mapped. */
static struct codefile *open_file(const char *root, pid_t pid, const struct space_mapping *m)
{
    const struct codefile_wanted wanted = {
        .build_id = m->file->build_id, .build_id_len = m->file->build_id_len, .inode = m->file->inode};
    const char *path = m->file->path;
    size_t len = strlen(path), tail = strlen(DELETED);
    struct codefile *f = codefile_open(root, path, &wanted);
    if (!f && root[0] && (wanted.build_id_len || wanted.inode))
        f = codefile_open("", path, &wanted);
    if (!f && wanted.build_id_len && len > tail && !strcmp(path + len - tail, DELETED)) {
        char *name = mem_strndup(path, len - tail);
        f = codefile_open(root, name, &wanted);
        free(name);
    }
    if (!f) {
        char link[96];
        snprintf(link, sizeof(link), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, m->start, m->end);
        f = codefile_open("", link, &wanted);
    }
    return f;
}

static struct codefile *file_of(struct user_stacks *u, const char *root, pid_t pid,
                                const struct space_mapping *m)
{
    struct buf key = BUF_INIT;
    bool added;
    uint64_t numbers[] = {m->file->major, m->file->minor, m->file->inode, m->file->build_id_len,
                          (uintptr_t)root};
    buf_add(&key, numbers, sizeof(numbers));
    buf_add(&key, m->file->build_id, m->file->build_id_len);
    buf_addstr(&key, m->file->path);
    size_t at = map_put(&u->of_file, key.data, key.len, u->files.len, &added);
    buf_release(&key);
    if (added) {
        struct codefile *f = open_file(root, pid, m);
        *vec_push(&u->files) = f;
    }
    return u->files.at[at];
}

static void place_in_file(struct codefile *f, const struct space_mapping *m, const char *root,
                          uint64_t offset, struct user_frame *out)
{
    out->kind = USER_FRAME_LOST;
    out->address = offset;
    out->module = (struct symbol_module){.path = m->file->path,
                                         .root = root,
                                         .build_id = m->file->build_id,
                                         .build_id_len = m->file->build_id_len};
    if (!f || !codefile_address(f, offset, &out->address))
        return;
    out->kind = USER_FRAME_FILE;
    if (!out->module.build_id_len)
        out->module.build_id_len = codefile_build_id(f, &out->module.build_id);
}

size_t user_stacks_find(struct user_stacks *u, pid_t pid, uint64_t time_ns, const uint64_t *pcs, size_t n,
                        struct user_frame *out, enum chain_end *why)
{
    if (u->files.len > FILES_MAX)
        close_files(u);
    const char *root = root_of(u, pid, time_ns);
    u->chain.len = 0;
    for (size_t i = 0; i < n; i++) {
        struct space_mapping m;
        struct chain_frame *link = vec_push(&u->chain);
        uint64_t pc =
            pcs[i] - (i > 0); /* what a call returns to may be another function's first instruction */
        out[i] = (struct user_frame){.kind = USER_FRAME_NOT_MAPPED, .module.path = "", .address = pc};
        if (!spaces_find(u->spaces, pid, time_ns, pc, &m))
            continue;
        uint64_t offset = pc - m.start + m.page_offset;
        if (m.kind == MAPPING_VDSO || m.kind == MAPPING_UNKNOWN) {
            out[i].kind = USER_FRAME_SPECIAL;
            out[i].module.path = m.file ? m.file->path : "";
            out[i].address = pc - m.start;
        } else if (m.file && m.file->path[0] == '/') {
            link->file = file_of(u, root, pid, &m);
            place_in_file(link->file, &m, root, offset, &out[i]);
            link->address = out[i].address;
            if (out[i].kind != USER_FRAME_FILE)
                link->file = NULL;
        } else {
            out[i].kind = USER_FRAME_ANONYMOUS;
        }
    }
    size_t trusted = chain_trusted(u->chain.at, n, why);
    for (size_t i = 0; i < n; i++)
        out[i].trusted = i < trusted;
    return trusted;
}
