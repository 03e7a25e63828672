/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/uprobe/alloc_processes.h"

#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "bpf/memleak.h"
#include "collect/process/loader_files.h"
#include "collect/process/mapped_code.h"
#include "collect/process/proc.h"
#include "sys/bpf_object.h"
#include "sys/probe/probe_find.h"
#include "sys/uprobe/alloc_attach.h"

#define SHARED_BYTES (MEMLEAK_PROCESSES * sizeof(struct memleak_process))

#define ALLOC_PROCESSES_MAX ALLOC_PROCESS_OWN

#define UPROBES "/sys/bus/event_source/devices/uprobe/type"

struct alloc_processes {
    struct sys_session *s;
    const struct alloc_functions *functions;
    struct alloc_places *places;
    struct VEC(struct alloc_process) all;
    bool places_given;              /* by --functions */
    bool may_come;                  /* ... in a library that may be loaded later */
    bool at_once;                   /* a link for many places */
    struct memleak_process *shared; /* by number; the programs read them */
    uint32_t *images;               /* numbers of images given so far, shared with the programs */
};

static void *map_processes(const struct sys_session *s)
{
    void *at = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, sys_map(s, "processes"), 0);
    return at == MAP_FAILED ? NULL : at;
}

struct alloc_processes *alloc_processes_new(struct sys_session *s, const struct alloc_functions *functions,
                                            struct error *e)
{
    struct memleak_process *shared = map_processes(s);
    if (!shared) {
        error_set(e, errno, "cannot share memory with the BPF programs: %s", strerror(errno));
        return NULL;
    }
    struct alloc_processes *all = mem_alloc(sizeof(*all));
    *all = (struct alloc_processes){
        .s = s,
        .shared = shared,
        .places = alloc_places_new(functions),
        .functions = functions,
        .places_given = functions->user_given,
        .may_come = functions->may_come,
        .at_once = bpf_program__autoload(bpf_object__find_program_by_name(s->object, "memleak_session")),
        .images = bpf_object_shared(s, "images")};
    return all;
}

static void release_links(struct alloc_process *p)
{
    uprobe_detach(&p->links, &p->multi_fds);
}

void alloc_processes_detach(struct alloc_processes *all)
{
    vec_each (struct alloc_process, p, &all->all)
        release_links(p);
}

void alloc_processes_free(struct alloc_processes *all)
{
    if (!all)
        return;
    alloc_processes_detach(all);
    vec_each (struct alloc_process, p, &all->all)
        vec_release(&p->files);
    vec_release(&all->all);
    alloc_places_free(all->places);
    munmap(all->shared, SHARED_BYTES);
    free(all);
}

const struct alloc_process *alloc_processes_all(const struct alloc_processes *all, size_t *n)
{
    *n = all->all.len;
    return all->all.at;
}

const struct alloc_process *alloc_processes_find(const struct alloc_processes *all, pid_t pid)
{
    for (size_t i = all->all.len; i--;)
        if (all->all.at[i].pid == pid)
            return &all->all.at[i];
    return NULL;
}

static int attach_file(struct alloc_processes *all, struct alloc_process *p, const char *path,
                       struct error *e)
{
    const struct alloc_file *file = alloc_places_in(all->places, path);
    if (!file || !file->places.len)
        return 0;
    vec_each (const struct alloc_file *, known, &p->files)
        if (*known == file)
            return 0;
    *vec_push(&p->files) = file;
    struct memleak_process *shared = &all->shared[p->number];
    vec_each (const struct alloc_place, place, &file->places)
        shared->reaches |= place->reaches;
    __atomic_store_n(&shared->is_flat, 0, __ATOMIC_SEQ_CST); /* it is to be judged anew */
    const int bad = alloc_attach(all->s, all->at_once, p, path, file);
    __atomic_store_n(&shared->calls, 0, __ATOMIC_SEQ_CST);
    vec_each (const struct alloc_place, place, &file->places) {
        p->calls += place->function->role == ALLOC_RETURNS;
        p->frees += place->function->role == ALLOC_FREES;
    }
    if (bad && access(UPROBES, F_OK))
        return error_set(e, EOPNOTSUPP,
                         "sys memleak cannot attach: this kernel has no uprobes (CONFIG_UPROBE_EVENTS)");
    return bad ? error_set(e, -bad, "sys memleak cannot attach to %s: %s", path, strerror(-bad)) : 0;
}

static int attach_files(struct alloc_processes *all, struct alloc_process *p,
                        const struct loader_files *files, struct error *e)
{
    int bad = 0;
    vec_each (const struct loader_file, file, files)
        bad = bad ? bad : attach_file(all, p, file->path, e);
    return bad;
}

/*
 * Allocators that lie beside the C library: a program that the process executes may have one, and there is no time to
 * attach when it begins. A probe in a file that is not mapped costs nothing.
 */
static void attach_others(struct alloc_processes *all, struct alloc_process *p,
                          const struct loader_files *files)
{
    static const char *const names[] = {"libjemalloc.so.?", "libtcmalloc.so.?", "libtcmalloc_minimal.so.?",
                                        "libmimalloc.so.?*"};
    const size_t calls = p->calls, frees = p->frees;
    struct error e;
    vec_each (const struct loader_file, file, files) {
        const char *slash = strrchr(file->path, '/');
        if (!slash || strncmp(slash + 1, "libc.so", strlen("libc.so")) || all->places_given)
            continue;
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
            struct buf pattern = BUF_INIT;
            glob_t found = {0};
            buf_printf(&pattern, "%.*s/%s", (int)(slash - file->path), file->path, names[i]);
            if (!glob(buf_str(&pattern), 0, NULL, &found))
                for (size_t j = 0; j < found.gl_pathc; j++)
                    attach_file(all, p, found.gl_pathv[j], &e);
            globfree(&found);
            buf_release(&pattern);
        }
    }
    p->calls = calls; /* of its own */
    p->frees = frees;
}

/* ---- processes ---- */

static struct alloc_process *find(struct alloc_processes *all, uint32_t number)
{
    return number < all->all.len ? &all->all.at[number] : NULL;
}

static void store(struct alloc_processes *all, const struct alloc_process *p, bool counts)
{
    const uint32_t pid = (uint32_t)p->pid;
    all->shared[p->number] =
        (struct memleak_process){.image = __atomic_add_fetch(all->images, 1, __ATOMIC_SEQ_CST),
                                 .reaches = all->shared[p->number].reaches};
    __atomic_store_n(&all->shared[p->number].counts, counts, __ATOMIC_SEQ_CST);
    bpf_map_update_elem(sys_map(all->s, "numbers"), &pid, &p->number, BPF_ANY);
}

static void read_comm(struct alloc_process *p)
{
    uint64_t began_ns;
    char comm[sizeof(p->comm)];
    if (proc_thread(p->pid, p->pid, comm, sizeof(comm), &began_ns))
        memcpy(p->comm, comm, sizeof(comm));
}

static struct alloc_process *add(struct alloc_processes *all, pid_t pid, struct error *e)
{
    if (all->all.len == ALLOC_PROCESSES_MAX) {
        error_set(e, ENOSPC, "sys memleak observes at most %u processes", ALLOC_PROCESSES_MAX);
        return NULL;
    }
    struct alloc_process *p = vec_push(&all->all);
    *p = (struct alloc_process){.pid = pid, .number = (uint32_t)all->all.len - 1};
    read_comm(p);
    return p;
}

static int finish(struct alloc_process *p, int bad)
{
    if (bad) {
        release_links(p);
        p->ended = true;
    }
    return bad;
}

/* Returns a function that the user named, and that none of the process's files has; NULL: there is none. */
static const struct alloc_function *missing(const struct alloc_processes *all, const struct alloc_process *p)
{
    vec_each (const struct alloc_function, function, &all->functions->all) {
        bool found = function->role == ALLOC_LOADS || function->path;
        vec_each (const struct alloc_file *, file, &p->files)
            vec_each (const struct alloc_place, place, &(*file)->places)
                found = found || place->function == function;
        if (!found)
            return function;
    }
    return NULL;
}

/* `path`: of the program, to be opened. */
static int check_functions(const struct alloc_processes *all, const struct alloc_process *p, const char *path,
                           struct error *e)
{
    const struct alloc_function *function = all->places_given ? missing(all, p) : NULL;
    struct buf similar = BUF_INIT;
    if (!function)
        return 0;
    if (path)
        probe_find_similar(path, function->name, &similar);
    const int bad = error_set(e, EINVAL, "--functions: neither the program nor a library has a function %s%s",
                              function->name, buf_str(&similar));
    buf_release(&similar);
    return bad;
}

/* `program`: NULL: that of the process. */
static int no_allocator(const struct alloc_process *p, const char *program, struct error *e)
{
    struct buf own = BUF_INIT;
    proc_program(p->pid, &own);
    int bad = 0;
    if (!program && !own.len) /* its mappings may be read by who may not read its files */
        bad = error_set(e, EPERM, "sys memleak cannot read the program of process %d: run it as root (sudo)",
                        (int)p->pid);
    else
        bad = error_set(e, ENOENT,
                        "%s has no function with the name of an allocator's: if it is stripped, install its "
                        "debug symbols; "
                        "if it has an allocator of its own, name its functions by --functions",
                        program ? program : buf_str(&own));
    buf_release(&own);
    return bad;
}

int alloc_processes_add(struct alloc_processes *all, pid_t pid, struct error *e)
{
    struct loader_files files = {NULL};
    struct alloc_process *p = add(all, pid, e);
    if (!p)
        return -ENOSPC;
    int bad = mapped_code_read(pid, &files);
    if (bad)
        bad = error_set(e, -bad, "cannot read what process %d has mapped: %s", (int)pid, strerror(-bad));
    else
        bad = attach_files(all, p, &files, e);
    if (!bad)
        attach_others(all, p, &files);
    char *program = mapped_code_program(pid);
    bad = bad ? bad : check_functions(all, p, program, e);
    free(program);
    if (!bad && (!p->calls || !p->frees) && !all->may_come)
        bad = no_allocator(p, NULL, e);
    loader_files_release(&files);
    if (!bad)
        store(all, p, true);
    return finish(p, bad);
}

/* Looks the program up as execvp() does. */
static char *find_program(const char *name)
{
    const char *path = getenv("PATH");
    if (strchr(name, '/') || !path)
        return mem_strdup(name);
    while (*path) {
        const size_t len = strcspn(path, ":");
        struct buf b = BUF_INIT;
        buf_printf(&b, "%.*s/%s", (int)len, path, name);
        if (!access(buf_str(&b), X_OK))
            return buf_detach(&b);
        buf_release(&b);
        path += len + (path[len] == ':');
    }
    return mem_strdup(name);
}

/* Of a script, the program that its first line names. */
static char *follow_script(char *program)
{
    char line[256] = "";
    FILE *f = fopen(program, "re");
    const bool is_script = f && fgets(line, sizeof(line), f) && !strncmp(line, "#!", 2);
    if (f)
        fclose(f);
    if (!is_script)
        return program;
    char *at = line + 2 + strspn(line + 2, " \t");
    at[strcspn(at, " \t\n")] = '\0';
    free(program);
    return mem_strdup(at);
}

int alloc_processes_add_command(struct alloc_processes *all, pid_t pid, const char *program, struct error *e)
{
    struct loader_files files = {NULL};
    struct alloc_process *p = add(all, pid, e);
    if (!p)
        return -ENOSPC;
    char *path = follow_script(find_program(program));
    loader_files_read(path, NULL, &files);
    int bad = access(path, R_OK) ? 0 : attach_file(all, p, path, e);
    bad = bad ? bad : attach_files(all, p, &files, e);
    attach_others(all, p, &files);
    bad = bad ? bad : check_functions(all, p, path, e);
    if (!bad && (!p->calls || !p->frees) && !all->may_come && !access(path, R_OK))
        bad = no_allocator(p, path, e);
    loader_files_release(&files);
    free(path);
    if (!bad)
        store(all, p, false);
    return finish(p, bad);
}

void alloc_processes_again(struct alloc_processes *all, uint32_t number)
{
    struct alloc_process *p = find(all, number);
    struct loader_files files = {NULL};
    struct error e;
    if (!p || p->ended)
        return;
    read_comm(p);
    if (!mapped_code_read(p->pid, &files))
        attach_files(all, p, &files, &e); /* a process that has ended meanwhile has no more use for them */
    loader_files_release(&files);
}

void alloc_processes_executed(struct alloc_processes *all, uint32_t number, const char comm[SYS_COMM_BYTES])
{
    struct alloc_process *p = find(all, number);
    if (!p)
        return;
    memcpy(p->comm, comm, sizeof(p->comm));
    alloc_processes_again(all, number);
}

void alloc_processes_end(struct alloc_processes *all, uint32_t number)
{
    struct alloc_process *p = find(all, number);
    if (!p)
        return;
    release_links(p);
    p->ended = true;
}

void alloc_processes_end_gone(struct alloc_processes *all)
{
    vec_each (struct alloc_process, p, &all->all)
        if (!p->ended && kill(p->pid, 0) && errno == ESRCH)
            alloc_processes_end(all, p->number);
}

/* ---- functions that call each other ---- */

#define CALLS_ENOUGH 1000u

bool alloc_processes_judge(struct alloc_processes *all)
{
    bool undecided = false;
    vec_each (struct alloc_process, p, &all->all) {
        struct memleak_process *shared = &all->shared[p->number];
        if (p->ended || shared->is_flat || shared->nested)
            continue;
        if (shared->calls >= CALLS_ENOUGH)
            __atomic_store_n(&shared->is_flat, 1, __ATOMIC_SEQ_CST);
        else
            undecided = true;
    }
    return undecided;
}

struct memleak_process *alloc_processes_own(struct alloc_processes *all)
{
    return &all->shared[ALLOC_PROCESS_OWN];
}

bool alloc_processes_at_once(const struct alloc_processes *all)
{
    return all->at_once;
}
