/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/target_process.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

static bool is_code(const struct space_mapping *m)
{
    return m->file && m->file->path[0] == '/' && m->protection & PROT_EXEC;
}

static bool is_of(const struct target_module *m, const struct space_mapping *mapping)
{
    return mapping->file && m->inode == mapping->file->inode && !strcmp(m->path, mapping->file->path);
}

/* The segment of the file that the mapping shows tells the bias. */
static bool find_bias(struct target_module *m, const struct space_mapping *code)
{
    vec_each (const struct probe_code, c, &m->elf.codes) {
        uint64_t offset;
        if (probe_file_offset(&m->elf, c->low, &offset) && (offset & ~4095ull) == code->page_offset) {
            m->bias = code->start - (c->low & ~4095ull);
            return true;
        }
    }
    return false;
}

static void open_module(struct target *t, const struct space_mapping *code)
{
    struct buf path = BUF_INIT;
    struct error e = {""};
    struct target_module *m = mem_alloc(sizeof(*m));
    *m = (struct target_module){
        .path = mem_strdup(code->file->path), .inode = code->file->inode, .start = code->start};
    buf_printf(&path, "%s%s", t->root, m->path);
    if (!probe_file_open(&m->elf, buf_str(&path), &e)) {
        m->is_readable = find_bias(m, code);
        if (!m->is_readable)
            probe_file_close(&m->elf);
    }
    m->rules = dso_open(t->root, m->path, m->inode);
    buf_release(&path);
    *vec_push(&t->modules) = m;
}

static void close_module(struct target_module *m)
{
    if (m->is_readable)
        probe_file_close(&m->elf);
    dso_free(m->rules);
    free(m->path);
    free(m);
}

/* Forgets files that are mapped elsewhere by now, or not at all. */
static void close_old(struct target *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->modules.len; i++) {
        struct target_module *m = t->modules.at[i];
        const struct space_mapping *now = target_mapping(t, m->start);
        if (now && now->start == m->start && is_of(m, now))
            t->modules.at[kept++] = m;
        else
            close_module(m);
    }
    t->modules.len = kept;
}

int target_read_maps(struct target *t, struct error *e)
{
    proc_maps_release(&t->files, &t->maps);
    t->files = (struct mapped_files){0};
    t->maps = (struct mapping_list){0};
    const int bad = proc_maps_read(t->pid, &t->files, &t->maps);
    if (bad)
        return error_set(e, -bad, "cannot read the mappings of process %d: %s", (int)t->pid, strerror(-bad));
    close_old(t);
    vec_each (const struct space_mapping, m, &t->maps) {
        bool is_open = false;
        vec_each (struct target_module *, opened, &t->modules)
            is_open |= is_of(*opened, m);
        if (is_code(m) && !is_open)
            open_module(t, m);
    }
    return 0;
}

int target_open(struct target *t, pid_t pid, struct error *e)
{
    struct buf path = BUF_INIT;
    *t = (struct target){.pid = pid, .memory = -1};
    buf_printf(&path, "/proc/%d/mem", (int)pid);
    t->memory = open(buf_str(&path), O_RDWR | O_CLOEXEC);
    const int error = errno;
    buf_release(&path);
    buf_printf(&path, "/proc/%d/root", (int)pid);
    t->root = mem_strdup(buf_str(&path));
    buf_release(&path);
    if (t->memory < 0)
        return error == ENOENT ? error_set(e, ESRCH, "there is no process %d", (int)pid)
               : error == EACCES || error == EPERM
                   ? error_set(e, error,
                               "process %d may not be traced by this user: see ptrace_scope and \"not "
                               "dumpable\" in "
                               "ptrace(2), or be root",
                               (int)pid)
                   : error_set(e, error, "cannot open the memory of process %d: %s", (int)pid,
                               strerror(error));
    return target_read_maps(t, e);
}

void target_close(struct target *t)
{
    vec_each (struct target_module *, m, &t->modules)
        close_module(*m);
    vec_release(&t->modules);
    proc_maps_release(&t->files, &t->maps);
    if (t->memory >= 0)
        close(t->memory);
    free(t->root);
}

const struct space_mapping *target_mapping(const struct target *t, uint64_t address)
{
    vec_each (const struct space_mapping, m, &t->maps)
        if (address >= m->start && address < m->end)
            return m;
    return NULL;
}

bool target_read(const struct target *t, uint64_t address, void *to, size_t bytes)
{
    return pread(t->memory, to, bytes, (off_t)address) == (ssize_t)bytes;
}

bool target_write(const struct target *t, uint64_t address, const void *from, size_t bytes)
{
    return pwrite(t->memory, from, bytes, (off_t)address) == (ssize_t)bytes;
}

const struct target_module *target_module_of(const struct target *t, const struct space_mapping *mapping)
{
    vec_each (struct target_module *, m, &t->modules)
        if (is_of(*m, mapping))
            return *m;
    return NULL;
}

const char *target_module_name(const struct target_module *m)
{
    return strrchr(m->path, '/') + 1;
}

const struct target_module *target_module(const struct target *t, const char *name)
{
    vec_each (struct target_module *, m, &t->modules)
        if ((*m)->is_readable && !strncmp(target_module_name(*m), name, strlen(name)))
            return *m;
    return NULL;
}

/* Calls `fn` for each exported function and variable, until it returns true. */
typedef bool symbol_fn(void *arg, const char *name, const GElf_Sym *symbol);

static void each_symbol(const struct target_module *m, symbol_fn *fn, void *arg)
{
    Elf_Scn *section = NULL;
    while ((section = elf_nextscn(m->elf.object->elf, section))) {
        GElf_Shdr header;
        GElf_Sym symbol;
        Elf_Data *data;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNSYM || !header.sh_entsize ||
            !(data = elf_getdata(section, NULL)))
            continue;
        for (int i = 0; gelf_getsym(data, i, &symbol); i++) {
            const char *name = elf_strptr(m->elf.object->elf, header.sh_link, symbol.st_name);
            if (name && symbol.st_shndx != SHN_UNDEF && fn(arg, name, &symbol))
                return;
        }
    }
}

struct by_name {
    const char *name;
    GElf_Sym found;
};

static bool has_name(void *arg, const char *name, const GElf_Sym *symbol)
{
    struct by_name *b = arg;
    if (strcmp(name, b->name) != 0)
        return false;
    b->found = *symbol;
    return true;
}

uint64_t target_symbol(const struct target_module *m, const char *name, uint64_t *bytes)
{
    struct by_name b = {.name = name};
    each_symbol(m, has_name, &b);
    if (bytes)
        *bytes = b.found.st_size;
    return b.found.st_value ? m->bias + b.found.st_value : 0;
}

struct by_address {
    uint64_t address;
    const char *name;
};

static bool contains(void *arg, const char *name, const GElf_Sym *symbol)
{
    struct by_address *b = arg;
    if (GELF_ST_TYPE(symbol->st_info) != STT_FUNC || b->address < symbol->st_value ||
        b->address - symbol->st_value >= symbol->st_size)
        return false;
    b->name = name;
    return true;
}

const char *target_function_at(const struct target_module *m, uint64_t address)
{
    struct by_address b = {.address = address - m->bias};
    each_symbol(m, contains, &b);
    return b.name;
}
