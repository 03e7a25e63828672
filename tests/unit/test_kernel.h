/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TEST_KERNEL_H
#define TEST_KERNEL_H

/* What the tests of readers of /proc and /sys share: a folder that stands for the root, and recorded files. */

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/read_file.h"

#define TEST(text, function)                                                                                 \
    {                                                                                                        \
        text, function, NULL, NULL, NULL                                                                     \
    }

/** Runs a command of the shell, which must succeed. */
static inline void run_shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static inline void run_shell(const char *fmt, ...)
{
    va_list arguments;
    char *text;
    va_start(arguments, fmt);
    assert_true(vasprintf(&text, fmt, arguments) > 0);
    va_end(arguments);
    assert_int_equal(system(text), 0);
    free(text);
}

/** A new folder; the caller removes it. */
static inline char *make_root(void)
{
    char *root = mem_strdup("/tmp/allium-root-XXXXXX");
    assert_non_null(mkdtemp(root));
    return root;
}

static inline int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static inline void remove_root(char *root)
{
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(root);
}

/** The path below the root, its folders made; the caller frees it. */
static inline char *path_in(const char *root, const char *name)
{
    struct buf path = BUF_INIT;
    buf_printf(&path, "%s/%s", root, name);
    for (char *slash = path.data + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path.data, 0755);
        *slash = '/';
    }
    return buf_detach(&path);
}

static inline void put_bytes(const char *root, const char *name, const void *bytes, size_t len)
{
    char *path = path_in(root, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
    free(path);
}

static inline void put(const char *root, const char *name, const char *text)
{
    put_bytes(root, name, text, strlen(text));
}

static inline void put_link(const char *root, const char *name, const char *to)
{
    char *path = path_in(root, name);
    assert_int_equal(symlink(to, path), 0);
    free(path);
}

/** A file of tests/unit/recorded. */
static inline struct buf recorded(const char *name)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    buf_printf(&path, "%s/%s", getenv("RECORDED"), name);
    assert_int_equal(file_read(buf_str(&path), 1 << 24, &text), 0);
    buf_release(&path);
    return text;
}

#endif
