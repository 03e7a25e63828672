/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbol/module_search.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/vec.h"

#define DEPTH_MAX   16
#define ENTRIES_MAX 500000u

struct found {
    char *module, *path;
};

struct module_search {
    char *root, *release, *vmlinux;
    bool listed;
    unsigned entries; /* of folders, so far */
    struct VEC(struct found) all;
};

struct module_search *module_search_new(const char *root, const char *release, const char *vmlinux)
{
    struct module_search *s = mem_alloc(sizeof(*s));
    s->root = mem_strdup(root);
    s->release = mem_strdup(release);
    s->vmlinux = vmlinux ? mem_strdup(vmlinux) : NULL;
    return s;
}

void module_search_free(struct module_search *s)
{
    if (!s)
        return;
    vec_each (struct found, f, &s->all) {
        free(f->module);
        free(f->path);
    }
    vec_release(&s->all);
    free(s->root);
    free(s->release);
    free(s->vmlinux);
    free(s);
}

/* "snd-hda-intel.ko.xz" is the module snd_hda_intel. NULL: it is no module. The caller frees it. */
static char *module_of_file(const char *name)
{
    static const char *const tails[] = {".ko",     ".ko.debug",    ".ko.gz",       ".ko.xz",
                                        ".ko.zst", ".ko.debug.gz", ".ko.debug.xz", ".ko.debug.zst"};
    const char *dot = strstr(name, ".ko");
    bool fits = false;
    for (size_t i = 0; dot && i < sizeof(tails) / sizeof(*tails); i++)
        fits |= !strcmp(dot, tails[i]);
    if (!fits || dot == name)
        return NULL;
    char *module = mem_strndup(name, (size_t)(dot - name));
    for (char *dash = module; (dash = strchr(dash, '-'));)
        *dash = '_';
    return module;
}

static bool exists(const char *folder, const char *name, mode_t kind)
{
    struct stat st;
    struct buf path = BUF_INIT;
    buf_printf(&path, "%s/%s", folder, name);
    bool is = !lstat(buf_str(&path), &st) && (st.st_mode & S_IFMT) == kind;
    buf_release(&path);
    return is;
}

/* Of some file systems the entries do not say whether they are folders. */
static bool is_folder(const char *folder, const struct dirent *entry)
{
    return entry->d_type == DT_DIR || (entry->d_type == DT_UNKNOWN && exists(folder, entry->d_name, S_IFDIR));
}

static void list_folder(struct module_search *s, const char *folder, unsigned depth)
{
    DIR *d = opendir(folder);
    for (struct dirent *entry; d && s->entries < ENTRIES_MAX && (entry = readdir(d)); s->entries++) {
        struct buf path = BUF_INIT;
        buf_printf(&path, "%s/%s", folder, entry->d_name);
        if (*entry->d_name != '.' && is_folder(folder, entry)) {
            if (depth)
                list_folder(s, buf_str(&path), depth - 1);
        } else {
            char *module = module_of_file(entry->d_name);
            if (module)
                *vec_push(&s->all) = (struct found){module, mem_strdup(buf_str(&path))};
        }
        buf_release(&path);
    }
    if (d)
        closedir(d);
}

/* All of it if it is a folder of modules or a build of a kernel, else only the files in it. */
static void list_beside(struct module_search *s, const char *folder)
{
    bool whole = exists(folder, "kernel", S_IFDIR) || exists(folder, "modules.order", S_IFREG);
    list_folder(s, folder, whole ? DEPTH_MAX : 0);
}

/* "x/boot/vmlinux-RELEASE" has its modules in x/lib/modules/RELEASE. */
static void list_of_boot(struct module_search *s, const char *folder)
{
    static const char boot[] = "/boot";
    const char *name = strrchr(s->vmlinux, '/') + 1, *release = strchr(name, '-');
    size_t len = strlen(folder), tail = sizeof(boot) - 1;
    struct buf path = BUF_INIT;
    if (!release || len < tail || strcmp(folder + len - tail, boot) != 0)
        return;
    buf_printf(&path, "%.*s/lib/modules/%s", (int)(len - tail), folder, release + 1);
    list_folder(s, buf_str(&path), DEPTH_MAX);
    buf_release(&path);
}

static void list_all(struct module_search *s)
{
    static const char *const places[] = {"/usr/lib/debug/lib/modules/", "/usr/lib/debug/usr/lib/modules/",
                                         "/lib/modules/"};
    const char *slash = s->vmlinux ? strrchr(s->vmlinux, '/') : NULL;
    if (slash) {
        char *folder = mem_strndup(s->vmlinux, (size_t)(slash - s->vmlinux));
        list_beside(s, *folder ? folder : "/");
        list_of_boot(s, folder);
        free(folder);
    }
    for (size_t i = 0; *s->release && !strchr(s->release, '/') && i < sizeof(places) / sizeof(*places); i++) {
        struct buf path = BUF_INIT;
        buf_printf(&path, "%s%s%s", s->root, places[i], s->release);
        list_folder(s, buf_str(&path), DEPTH_MAX);
        buf_release(&path);
    }
}

const char *module_search_path(struct module_search *s, const char *module, size_t n)
{
    if (!s->listed)
        list_all(s);
    s->listed = true;
    vec_each (const struct found, f, &s->all)
        if (!strcmp(f->module, module) && !n--)
            return f->path;
    return NULL;
}
