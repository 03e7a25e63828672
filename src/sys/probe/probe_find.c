/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/probe/probe_find.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "collect/process/loader_files.h"
#include "collect/process/mapped_code.h"
#include "model/profile/nearest.h"
#include "symbol/probe/probe_file.h"

#define STATIC_PREFIX "usdt:"
#define NEAREST_MOST  3u

/* ---- files ---- */

static bool is_program(const char *library, const char *program)
{
    const char *slash = strrchr(program, '/');
    return !*library || !strcmp(library, slash ? slash + 1 : program);
}

/* Adds the libraries of the target. `also`: one that it may open later; NULL: none. */
static void read_libraries(const struct probe_target *target, const char *also, struct loader_files *files)
{
    if (target->pid)
        mapped_code_read(target->pid, files);
    else
        loader_files_read(target->program, also, files);
}

/* Returns whether `library` is a name of the file: a library's name is often a link to its file. */
static bool is_called(const struct loader_file *file, const char *library)
{
    const char *slash = strrchr(file->path, '/'), *inner = strrchr(file->name, '/');
    struct stat one, other;
    struct buf beside = BUF_INIT;
    buf_printf(&beside, "%.*s/%s", (int)(slash - file->path), file->path, library);
    const bool is = !strcmp(file->name, library) || !strcmp(slash + 1, library) ||
                    (inner && !strcmp(inner + 1, library)) ||
                    (!stat(buf_str(&beside), &one) && !stat(file->path, &other) &&
                     one.st_dev == other.st_dev && one.st_ino == other.st_ino);
    buf_release(&beside);
    return is;
}

/* Sets *path, which the caller frees, to the file that `library` names: "" or the program's name, a path, or the name
 * of a library, which is found as the loader finds it. In a process, paths and names are those of its mappings. */
static int find_file(const char *library, const struct probe_target *target, const char *text, char **path,
                     struct error *e)
{
    struct loader_files files = {NULL};
    const char *program = target->program;
    *path = NULL;
    const bool is_path = strchr(library, '/') != NULL;
    if (is_program(library, program) || (is_path && !target->pid)) {
        *path = mem_strdup(is_path ? library : program);
        return 0;
    }
    read_libraries(target, library, &files);
    vec_each (const struct loader_file, file, &files)
        if (!*path && is_called(file, library))
            *path = mem_strdup(file->path);
    loader_files_release(&files);
    if (!*path && is_path) /* it is not there yet */
        *path = mem_strdup(library);
    if (*path)
        return 0;
    return target->pid
               ? error_set(e, ENOENT,
                           "--function %s: process %d has no library %s now: name a file of /proc/%d/maps, "
                           "or :NAME for the program itself",
                           text, (int)target->pid, library, (int)target->pid)
               : error_set(e, ENOENT,
                           "--function %s: the loader finds no library %s for %s: name its file, "
                           "or :NAME for the program itself",
                           text, library, program);
}

/* ---- names that are alike ---- */

struct nearest_names {
    const char *wanted;
    char *name[NEAREST_MOST + 1];
    size_t apart[NEAREST_MOST + 1], n;
};

static void offer_name(void *arg, const char *name)
{
    struct nearest_names *s = arg;
    const size_t apart = nearest_unlikeness(s->wanted, name);
    if (apart == SIZE_MAX || (s->n == NEAREST_MOST && apart >= s->apart[s->n - 1]))
        return;
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->name[i], name))
            return;
    size_t at = s->n++;
    for (; at && s->apart[at - 1] > apart; at--) {
        s->name[at] = s->name[at - 1];
        s->apart[at] = s->apart[at - 1];
    }
    s->name[at] = mem_strdup(name);
    s->apart[at] = apart;
    if (s->n > NEAREST_MOST)
        free(s->name[--s->n]);
}

/* Appends "; similar names: getenv, setenv", and frees the names. */
static void add_nearest(struct nearest_names *s, struct buf *b)
{
    for (size_t i = 0; i < s->n; i++) {
        buf_printf(b, "%s%s", i ? ", " : "; similar names: ", s->name[i]);
        free(s->name[i]);
    }
    s->n = 0;
}

void probe_find_similar(const char *path, const char *name, struct buf *b)
{
    struct nearest_names names = {.wanted = name};
    struct probe_file f;
    struct error e;
    if (probe_file_open(&f, path, &e))
        return;
    probe_file_names(&f, offer_name, &names);
    add_nearest(&names, b);
    probe_file_close(&f);
}

/* ---- functions ---- */

static int fail_function(const struct probe_file *f, enum probe_function found, const char *name,
                         const char *text, struct error *e)
{
    struct nearest_names names = {.wanted = name};
    struct buf b = BUF_INIT;
    if (found == PROBE_FUNCTION_NONE)
        probe_file_names(f, offer_name, &names);
    add_nearest(&names, &b);
    const char *path = f->object->path;
    const int bad =
        found == PROBE_FUNCTION_SEVERAL
            ? error_set(e, EINVAL, "--function %s: several local functions of %s are called %s", text, path,
                        name)
        : found == PROBE_FUNCTION_CHOSEN
            ? error_set(e, EINVAL,
                        "--function %s: when a program starts, %s chooses one of several functions for %s: "
                        "name one of these, as nm prints them",
                        text, path, name)
            : error_set(e, ENOENT, "--function %s: %s has no function %s%s", text, path, name, buf_str(&b));
    buf_release(&b);
    return bad;
}

static int find_function(struct probe *p, const char *path, const char *name, const char *text,
                         struct error *e)
{
    struct probe_file f;
    uint64_t address, bytes, offset = 0;
    int bad = probe_file_open(&f, path, e);
    if (bad)
        return bad;
    const enum probe_function found = probe_file_function(&f, name, &address, &bytes);
    const struct probe_code *code = found == PROBE_FUNCTION_ONE ? probe_file_code(&f, address) : NULL;
    if (found != PROBE_FUNCTION_ONE) {
        bad = fail_function(&f, found, name, text, e);
    } else if (!code) {
        bad = error_set(e, ENOEXEC, "--function %s: %s has no code in %s", text, name, path);
    } else {
        struct probe_site *site = vec_push(&p->sites);
        site->file = mem_strdup(path);
        site->place = probe_place_choose(code->bytes, code->high - code->low, address - code->low, bytes);
        probe_file_offset(&f, address + site->place.after, &offset);
        site->offset = offset;
        p->name = mem_strdup(name);
    }
    probe_file_close(&f);
    return bad;
}

/* ---- static probes ---- */

struct static_search {
    struct probe *p;
    const struct probe_file *f;
    const char *path, *wanted; /* wanted: PROVIDER:NAME */
    struct nearest_names *names;
    struct error *e;
    int bad;
};

static void take_static(void *arg, const struct static_probe *s)
{
    struct static_search *of = arg;
    struct buf called = BUF_INIT;
    buf_printf(&called, "%s:%s", s->provider, s->name);
    const bool is = !strcmp(buf_str(&called), of->wanted);
    if (!is)
        offer_name(of->names, buf_str(&called));
    buf_release(&called);
    const struct probe_code *code = is ? probe_file_code(of->f, s->address) : NULL;
    if (!code || of->bad)
        return;
    struct probe_site site = {.n = 0};
    const uint8_t *at = code->bytes + (s->address - code->low);
    if (probe_place_is_unsafe(at, code->high - s->address)) {
        of->bad =
            error_set(of->e, EOPNOTSUPP,
                      "--function: %s in %s is a nop of five bytes, where the kernel may damage the program",
                      of->wanted, of->path);
        return;
    }
    const char *unknown;
    size_t len;
    const int n = static_operands_parse(s->operands, site.operands, &unknown, &len);
    if (n < 0) {
        of->bad =
            error_set(of->e, EOPNOTSUPP, "--function: a value of %s in %s is at '%.*s', which cannot be read",
                      of->wanted, of->path, (int)len, unknown);
        return;
    }
    site.n = (unsigned)n;
    site.place = probe_place_at(at, code->high - s->address);
    probe_file_offset(of->f, s->address, &site.offset);
    if (s->semaphore)
        probe_file_offset(of->f, s->semaphore, &site.semaphore_offset);
    site.file = mem_strdup(of->path);
    *vec_push(&of->p->sites) = site;
}

static int search_static(struct probe *p, const char *path, const char *wanted, struct nearest_names *names,
                         struct error *e)
{
    struct probe_file f;
    const int bad = probe_file_open(&f, path, e);
    if (bad)
        return bad;
    struct static_search s = {.p = p, .f = &f, .path = path, .wanted = wanted, .names = names, .e = e};
    static_probes_read(f.object->elf, take_static, &s);
    probe_file_close(&f);
    return s.bad;
}

/* In one library, or, if `library` is NULL, in the program and all its libraries. */
static int find_static(struct probe *p, const char *library, const char *wanted, const char *text,
                       const struct probe_target *target, struct error *e)
{
    struct nearest_names names = {.wanted = wanted};
    struct loader_files files = {NULL};
    struct buf b = BUF_INIT;
    char *path = NULL;
    int bad = library ? find_file(library, target, text, &path, e) : 0;
    bad = bad ? bad : search_static(p, library ? path : target->program, wanted, &names, e);
    if (!bad && !library)
        read_libraries(target, NULL, &files);
    for (size_t i = 0; !bad && i < files.len; i++)
        if (strcmp(files.at[i].path, target->program) != 0) {
            bad = search_static(p, files.at[i].path, wanted, &names, e);
            bad = target->pid && (bad == -ENOEXEC || bad == -ENOENT) ? 0
                                                                     : bad; /* code that is in no ELF file */
        }
    add_nearest(&names, &b);
    if (!bad && !p->sites.len && library)
        bad = error_set(e, ENOENT, "--function %s: %s has no static probe %s%s", text, path, wanted,
                        buf_str(&b));
    else if (!bad && !p->sites.len)
        bad = error_set(e, ENOENT,
                        "--function %s: the program and the libraries that it is linked with have no static "
                        "probe %s%s",
                        text, wanted, buf_str(&b));
    buf_release(&b);
    buf_printf(&b, STATIC_PREFIX "%s", wanted);
    p->name = buf_detach(&b);
    loader_files_release(&files);
    free(path);
    return bad;
}

int probe_find(struct probe *p, const char *text, const struct probe_target *target, struct error *e)
{
    p->is_static = !strncmp(text, STATIC_PREFIX, strlen(STATIC_PREFIX));
    char *copy = mem_strdup(p->is_static ? text + strlen(STATIC_PREFIX) : text), *path = NULL;
    char *colon = strrchr(copy, ':'), *before = NULL;
    int bad = -EINVAL;
    for (char *at = colon; p->is_static && at && at > copy && !before; at--)
        before = at[-1] == ':' ? at - 1 : NULL;
    if (!colon || !colon[1] || (p->is_static && (colon == copy || (before && before + 1 == colon)))) {
        error_set(e, EINVAL,
                  "--function %s: use LIB:NAME, :NAME, usdt:PROVIDER:NAME or usdt:LIB:PROVIDER:NAME", text);
    } else if (p->is_static) {
        if (before)
            *before = '\0';
        bad = find_static(p, before ? copy : NULL, before ? before + 1 : copy, text, target, e);
    } else {
        *colon = '\0';
        bad = find_file(copy, target, text, &path, e);
        bad = bad ? bad : find_function(p, path, colon + 1, text, e);
    }
    free(path);
    free(copy);
    return bad;
}
