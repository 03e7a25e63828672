/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/unwind/user_stack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include <gelf.h>

#include "base/buf.h"
#include "base/hash_map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/process/container.h"
#include "collect/process/proc.h"
#include "collect/unwind/stack_dump.h"

#define FILES_MAX     256   /* open files; if there are more, all are closed */
#define ROOTS_MAX     65536 /* cached roots of processes; if there are more, the cache is emptied */
#define ANCESTORS_MAX 16

struct user_stacks {
    struct address_spaces *spaces;
    struct container_roots roots;
    struct map of_process; /* {pid, start of its image} -> index in root_paths */
    struct VEC(const char *) root_paths;
    struct map of_file;
    struct VEC(struct dso *) files; /* NULL: the file cannot be opened */
    struct VEC(struct fp_chain_frame) chain;
    struct VEC(struct stack_dump_frame) walked;
    struct dso *vdso;
    bool vdso_asked;
};

/* A process at a time, the root of its files, and the function that finds its mappings. */
struct moment {
    pid_t pid;
    uint64_t time_ns;
    const char *root;
    bool (*find)(struct address_spaces *s, pid_t pid, uint64_t time_ns, uint64_t address,
                 struct space_mapping *out);
};

struct user_stacks *user_stacks_new(struct address_spaces *spaces)
{
    struct user_stacks *u = mem_alloc(sizeof(*u));
    u->spaces = spaces;
    return u;
}

static void close_files(struct user_stacks *u)
{
    vec_each (struct dso *, f, &u->files)
        dso_free(*f);
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
    vec_release(&u->walked);
    dso_free(u->vdso);
    free(u);
}

/* Returns the root of the files of a process. If the process has ended, its root is not known any more; the best guess
 * is the root of the closest ancestor that still runs. */
static const char *find_root(struct user_stacks *u, pid_t pid, uint64_t time_ns)
{
    struct address_spaces_process p;
    for (int i = 0; i < ANCESTORS_MAX && address_spaces_process(u->spaces, pid, time_ns, &p); i++) {
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
    struct address_spaces_process p = {0};
    bool added;
    address_spaces_process(u->spaces, pid, time_ns, &p);
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

/* Opens a mapped file: by its name in the root of the process, then by its name in our root, and last by the kernel's
 * link to the mapped file, which exists even if the file was deleted. Returns NULL if none can be opened. */
static struct dso *open_file(const char *root, pid_t pid, const struct space_mapping *m)
{
    const char *path = m->file->path;
    uint64_t inode = m->file->inode;
    struct dso *f = dso_open(root, path, inode);
    if (!f && root[0] && inode)
        f = dso_open("", path, inode);
    if (!f) {
        char link[96];
        snprintf(link, sizeof(link), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, m->start, m->end);
        f = dso_open("", link, inode);
    }
    return f;
}

static struct dso *file_of(struct user_stacks *u, const char *root, pid_t pid, const struct space_mapping *m)
{
    struct buf key = BUF_INIT;
    bool added;
    uint64_t numbers[] = {m->file->major, m->file->minor, m->file->inode, (uintptr_t)root};
    buf_add(&key, numbers, sizeof(numbers));
    buf_addstr(&key, m->file->path);
    size_t at = map_put(&u->of_file, key.data, key.len, u->files.len, &added);
    buf_release(&key);
    if (added) {
        struct dso *f = open_file(root, pid, m);
        *vec_push(&u->files) = f;
    }
    return u->files.at[at];
}

static void place_in_file(struct dso *f, const struct space_mapping *m, const char *root, uint64_t offset,
                          struct user_frame *out)
{
    out->kind = USER_FRAME_LOST;
    out->address = offset;
    out->module = (struct symbol_module){.path = m->file->path, .root = root};
    if (!f || !dso_address(f, offset, &out->address))
        return;
    out->kind = USER_FRAME_FILE;
    out->module.build_id_len = dso_build_id(f, &out->module.build_id);
}

/* Returns our own vdso if the mapping is a vdso: the kernel maps the same one into all 64-bit processes. Else NULL. */
static struct dso *vdso_of(struct user_stacks *u, const struct space_mapping *m)
{
    const GElf_Ehdr *image = (const GElf_Ehdr *)getauxval(AT_SYSINFO_EHDR);
    if (!u->vdso && !u->vdso_asked && image)
        u->vdso = dso_open_image(image, image->e_shoff + (size_t)image->e_shnum * image->e_shentsize);
    u->vdso_asked = true;
    return m->kind == MAPPING_VDSO ? u->vdso : NULL;
}

/* Finds the code at an address of a process: for display in *out, and for the unwind rules as the return value. */
static struct stack_dump_code place(struct user_stacks *u, const struct moment *when, uint64_t address,
                                    struct user_frame *out)
{
    struct stack_dump_code code = {NULL, 0};
    struct space_mapping m;
    *out = (struct user_frame){.kind = USER_FRAME_NOT_MAPPED, .module.path = "", .address = address};
    if (!when->find(u->spaces, when->pid, when->time_ns, address, &m))
        return code;
    uint64_t offset = address - m.start + m.page_offset;
    if (m.kind == MAPPING_VDSO || m.kind == MAPPING_UNKNOWN) {
        out->kind = USER_FRAME_SPECIAL;
        out->module.path = m.file ? m.file->path : "";
        out->address = code.address = address - m.start;
        code.file = vdso_of(u, &m);
    } else if (m.file && m.file->path[0] == '/') {
        code.file = file_of(u, when->root, when->pid, &m);
        place_in_file(code.file, &m, when->root, offset, out);
        code.address = out->address;
        if (out->kind != USER_FRAME_FILE)
            code.file = NULL;
    } else {
        out->kind = USER_FRAME_ANONYMOUS;
    }
    return code;
}

static struct moment moment_of(struct user_stacks *u, pid_t pid, uint64_t time_ns)
{
    if (u->files.len > FILES_MAX)
        close_files(u);
    return (struct moment){pid, time_ns, root_of(u, pid, time_ns), address_spaces_find};
}

size_t user_stacks_find(struct user_stacks *u, pid_t pid, uint64_t time_ns, const uint64_t *pcs, size_t n,
                        struct user_frame *out, enum fp_chain_end *why)
{
    struct moment when = moment_of(u, pid, time_ns);
    when.find = address_spaces_find_code;
    u->chain.len = 0;
    for (size_t i = 0; i < n; i++) {
        /* A return address may be the first instruction of the next function, so the byte before it is looked up. */
        struct stack_dump_code code = place(u, &when, pcs[i] - (i > 0), &out[i]);
        *vec_push(&u->chain) = (struct fp_chain_frame){code.file, code.address};
    }
    size_t trusted = fp_chain_trusted(u->chain.at, n, why);
    for (size_t i = 0; i < n; i++)
        out[i].trusted = i < trusted;
    return trusted;
}

struct walk {
    struct user_stacks *u;
    struct moment when;
    struct user_frame *out; /* where find_code() stores the next frame */
};

static struct stack_dump_code find_code(void *arg, uint64_t pc)
{
    struct walk *w = arg;
    return place(w->u, &w->when, pc, w->out++);
}

size_t user_stacks_walk(struct user_stacks *u, pid_t pid, uint64_t time_ns, const struct stack_dump *c,
                        struct user_frame *out, size_t max, enum stack_dump_end *end)
{
    struct walk w = {u, moment_of(u, pid, time_ns), out};
    while (u->walked.len < max)
        *vec_push(&u->walked) = (struct stack_dump_frame){0};
    size_t n = stack_dump_walk(c, find_code, &w, u->walked.at, max, end);
    for (size_t i = 0; i < n; i++) {
        /* A signal frame was recognised only after its code had been looked up as that of a return address. */
        if (i && u->walked.at[i].exact)
            place(u, &w.when, u->walked.at[i].pc, &out[i]);
        out[i].trusted = true;
    }
    return n;
}
