/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/wrapper_lists.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allium_version.h"
#include "base/buf.h"
#include "base/installed_file.h"
#include "base/mem.h"
#include "cli/command.h"

#define WRAPPERS       "wrappers"
#define HELPERS        "kernel-helpers"
#define LIST_BYTES_MAX (1u << 20)

/* 0, or the errno of what went wrong. */
static int read_list(const char *path, struct buf *text)
{
    char part[65536];
    FILE *file = fopen(path, "re");
    if (!file)
        return errno;
    errno = 0;
    for (size_t n; text->len <= LIST_BYTES_MAX && (n = fread(part, 1, sizeof(part), file));)
        buf_add(text, part, n);
    int bad = ferror(file) ? (errno ? errno : EIO) : text->len > LIST_BYTES_MAX ? EFBIG : 0;
    fclose(file);
    return bad;
}

static void add_list(struct wrappers *w, const char *path)
{
    struct buf text = BUF_INIT;
    struct wrappers_bad bad;
    int failed = read_list(path, &text);
    if (failed) {
        command_fail(0, "%s: %s; its list is left out", path, strerror(failed));
    } else {
        wrappers_add(w, buf_str(&text), text.len, &bad);
        if (bad.lines > 1)
            command_fail(0, "%s:%zu: %s; it and %zu more lines are left out, the rest is used", path,
                         bad.first, bad.why, bad.lines - 1);
        else if (bad.lines)
            command_fail(0, "%s:%zu: %s; the line is left out, the rest is used", path, bad.first, bad.why);
    }
    buf_release(&text);
}

/* Never NULL; the caller frees it. */
static char *shipped_list(const char *name)
{
    char *path = installed_file_find(name, ALLIUM_DATA_BESIDE, ALLIUM_DATA_DIR);
    if (path)
        return path;
    struct buf expected = BUF_INIT;
    buf_printf(&expected, "%s/%s", ALLIUM_DATA_DIR, name);
    return buf_detach(&expected);
}

/* NULL: there can be none. The caller frees it. */
static char *own_list(const char *name)
{
    struct buf path = BUF_INIT;
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (config && config[0] == '/') /* others are to be ignored, says the XDG Base Directory Specification */
        buf_addstr(&path, config);
    else if (home && *home)
        buf_printf(&path, "%s/.config", home);
    else
        return NULL;
    buf_printf(&path, "/allium/%s", name);
    return buf_detach(&path);
}

static void read_lists(struct wrappers *w, const char *name)
{
    char *shipped = shipped_list(name), *own = own_list(name);
    add_list(w, shipped);
    if (own && !access(own, F_OK))
        add_list(w, own);
    free(shipped);
    free(own);
}

void wrapper_lists_read(struct wrappers *w)
{
    read_lists(w, WRAPPERS);
}

void wrapper_lists_read_helpers(struct wrappers *w)
{
    read_lists(w, HELPERS);
}

void wrapper_lists_add(struct wrappers *w, const char *names)
{
    struct wrappers_bad bad;
    char *lines = mem_strdup(names);
    for (char *c = lines; *c; c++)
        *c = *c == ',' ? '\n' : *c;
    wrappers_add(w, lines, strlen(lines), &bad);
    if (bad.lines)
        command_fail(0, "--wrapper %s: %s; it is left out, the rest is used", names, bad.why);
    free(lines);
}

char *wrapper_lists_for_agent(const char *names)
{
    struct wrappers w = {0};
    struct buf text = BUF_INIT;
    char *own = own_list(WRAPPERS);
    if (own && !access(own, F_OK))
        add_list(&w, own);
    if (names)
        wrapper_lists_add(&w, names);
    vec_each (const struct wrapper, it, &w.all)
        if (strchr(it->pattern, ';')) /* no function has such a name */
            command_fail(0, "the wrapper %s is left out: ; stands between names", it->pattern);
        else
            buf_printf(&text, "%s%s%s", text.len ? ";" : "", it->no ? "!" : "", it->pattern);
    wrappers_release(&w);
    free(own);
    return text.len ? buf_detach(&text) : NULL;
}

static bool is_of_kernel(const struct profile *p)
{
    return p->images.len == 1 && !strcmp(profile_text(p, p->images.at[0].exe), "vmlinux");
}

void wrapper_lists_mark(struct profile *p)
{
    struct wrappers w = {0};
    read_lists(&w, is_of_kernel(p) ? HELPERS : WRAPPERS);
    wrappers_mark(&w, p);
    wrappers_release(&w);
}
