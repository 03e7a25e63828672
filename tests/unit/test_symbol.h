/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TEST_SYMBOL_H
#define TEST_SYMBOL_H

/*
 * What the tests of src/symbol share: a directory of their own with freshly compiled programs (gcc, g++), and what
 * binutils say of these. PROGRAMS in the environment names tests/programs when it is not beside this file.
 */

#include "symbol/elf_file.h"
#include "symbol/symbol.h"
#include "symbol/symbol_names.h"

#include "base/buf.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define TEST(sentence, function)                                                                             \
    {                                                                                                        \
        sentence, function, NULL, NULL, NULL                                                                 \
    }

#define TEXT_BYTES 4096

static char dir[] = "/tmp/allium-symbol-XXXXXX", programs[PATH_MAX - 64];

__attribute__((format(printf, 1, 2))) static inline const char *in_dir(const char *fmt, ...)
{
    static char texts[8][TEXT_BYTES];
    static size_t next;
    char *text = texts[next++ % 8];
    int len = snprintf(text, TEXT_BYTES, "%s/", dir);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text + len, TEXT_BYTES - (size_t)len, fmt, ap);
    va_end(ap);
    return text;
}

/** Runs a shell command in the directory; it must succeed. */
__attribute__((format(printf, 1, 2))) static inline void sh(const char *fmt, ...)
{
    struct buf command = BUF_INIT;
    va_list ap;
    buf_printf(&command, "cd %s && ", dir);
    va_start(ap, fmt);
    buf_vprintf(&command, fmt, ap);
    va_end(ap);
    if (system(buf_str(&command)) != 0)
        fail_msg("failed: %s", buf_str(&command));
    buf_release(&command);
}

/** Where `nm` sees a symbol of a file in the directory. */
static inline uint64_t address_of(const char *file, const char *symbol)
{
    char line[TEXT_BYTES], name[TEXT_BYTES];
    uint64_t address = 0, at;
    sh("nm %s > nm.txt", file);
    FILE *f = fopen(in_dir("nm.txt"), "r");
    while (fgets(line, sizeof(line), f))
        if (sscanf(line, "%" SCNx64 " %*c %4095s", &at, name) == 2 && !strcmp(name, symbol))
            address = at;
    fclose(f);
    assert_int_not_equal(address, 0);
    return address;
}

/** The line of a program's source that has a text. */
static inline unsigned line_of(const char *source, const char *text)
{
    char path[PATH_MAX + 64], line[TEXT_BYTES];
    snprintf(path, sizeof(path), "%s/%s", programs, source);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    for (unsigned number = 1; fgets(line, sizeof(line), f); number++) {
        if (!strstr(line, text))
            continue;
        fclose(f);
        return number;
    }
    fail_msg("%s lacks %s", source, text);
    return 0;
}

static inline struct symbol_frames resolve(struct symbols *s, const struct symbol_module *m, uint64_t address,
                                           int expected)
{
    struct symbol_frames frames = {0};
    assert_int_equal(symbols_resolve(s, m, &address, 1, &frames), expected);
    assert_true(frames.len > 0);
    for (size_t i = 0; i < frames.len; i++) {
        assert_true(frames.at[i].function && frames.at[i].function[0]);
        assert_int_equal(frames.at[i].inlined, i + 1 < frames.len);
    }
    return frames;
}

static inline const char *function_at(struct symbols *s, const char *path, uint64_t address)
{
    return resolve(s, &(struct symbol_module){.path = path}, address, 0).at[0].function;
}

/** The module as its build id describes it; the bits live in a static. */
static inline struct symbol_module module_of(const char *path)
{
    static unsigned char bits[SYMBOL_BUILD_ID_MAX];
    const unsigned char *found;
    struct symbol_object *o;
    assert_int_equal(symbol_object_open("", path, &o), 0);
    size_t len = symbol_object_build_id(o, &found);
    assert_true(len >= 8);
    memcpy(bits, found, len);
    symbol_object_free(o);
    return (struct symbol_module){.path = path, .build_id = bits, .build_id_len = len};
}

static inline const char *hex_of(const struct symbol_module *m, size_t from)
{
    static char hex[2 * SYMBOL_BUILD_ID_MAX + 1];
    for (size_t i = from; i < m->build_id_len; i++)
        snprintf(hex + 2 * (i - from), 3, "%02x", m->build_id[i]);
    return hex;
}

/** The chain of inlined calls in symbol_inline.c, from whatever file it comes. */
static inline void assert_inlined_chain(struct symbols *s, const struct symbol_module *m)
{
    struct symbol_frames f = resolve(s, m, address_of("inline", "mark_innermost"), 0);
    const char *const functions[] = {"innermost", "middle", "outer"};
    const char *const lines[] = {"line: innermost", "line: middle", "line: outer calls"};
    char source[PATH_MAX + 64];
    snprintf(source, sizeof(source), "%s/symbol_inline.c", programs);
    assert_int_equal(f.len, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(f.at[i].function, functions[i]);
        assert_string_equal(f.at[i].file, source);
        assert_int_equal(f.at[i].line, line_of("symbol_inline.c", lines[i]));
    }
}

static inline bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static inline void assert_same(const struct symbol_frames *a, const struct symbol_frames *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(a[i].len, b[i].len);
        for (size_t k = 0; k < a[i].len; k++) {
            const struct symbol_frame *x = &a[i].at[k], *y = &b[i].at[k];
            assert_true(same_text(x->function, y->function) && same_text(x->file, y->file));
            assert_true(x->line == y->line && x->inlined == y->inlined);
        }
    }
}

/** Compiles "inline" and "names" from symbol_inline.c and symbol_names.cc. */
static inline int set_up_programs(void **state)
{
    (void)state;
    const char *given = getenv("PROGRAMS");
    char beside[PATH_MAX] = __FILE__, *slash = strrchr(beside, '/');
    if (slash)
        *slash = '\0';
    strncat(beside, "/../programs", sizeof(beside) - strlen(beside) - 1);
    char *real = realpath(given ? given : beside, NULL);
    if (!real || !mkdtemp(dir))
        return -1;
    snprintf(programs, sizeof(programs), "%s", real);
    free(real);
    sh("gcc -g -O2 -Wl,--build-id -o inline %s/symbol_inline.c", programs);
    sh("g++ -g -O2 -Wl,--build-id -o names %s/symbol_names.cc", programs);
    return 0;
}

static inline int remove_programs(void **state)
{
    (void)state;
    sh("rm -rf %s", dir);
    return 0;
}

#endif
