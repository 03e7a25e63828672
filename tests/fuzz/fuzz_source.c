/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/symbol/tree: the functions of any text are names that it has, on lines that it has; the words of
 * any Makefile are objects or folders; an archive is read to its end, or to where it is damaged; an index of any bytes
 * is refused, or finds only what it has. The first byte says which of these the rest is.
 */
#include "require.h"

#include "base/mem.h"
#include "symbol/tree/built_files.h"
#include "symbol/tree/c_functions.h"
#include "symbol/tree/index_file.h"
#include "symbol/tree/makefile_words.h"
#include "symbol/tree/source_index.h"
#include "symbol/tree/tar_files.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct text {
    const char *at;
    size_t len;
    uint32_t lines;
};

static void take_function(void *arg, const char *name, size_t len, uint32_t line)
{
    const struct text *t = arg;
    require(len && len < 256, "a name of %zu bytes", len);
    require(line && line <= t->lines, "line %u of %u", line, t->lines);
    for (size_t i = 0; i < len; i++)
        require(strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", name[i]) && name[i],
                "a byte that no name has");
}

static void scan(const char *at, size_t len)
{
    struct text t = {at, len, 1};
    for (size_t i = 0; i < len; i++)
        t.lines += at[i] == '\n';
    c_functions_find(at, len, take_function, &t);
}

static void take_word(void *arg, const struct makefile_word *w)
{
    (void)arg;
    require(w->base_len && w->len, "an empty word");
    require(w->text[w->len - 1] == '/' || w->text[w->len - 1] == 'o', "neither an object nor a folder");
    require(!memchr(w->text, '\0', w->len) && !memchr(w->base, '\n', w->base_len), "a word of two lines");
}

static void find_all(const struct source_index *s, struct built_files *b)
{
    size_t n = 0;
    for (uint32_t i = 0; i < source_index_files(s) && i < 64; i++) {
        require(built_files_state(b, i) < 8, "another state");
        built_files_in_module(b, i, "m");
        require(strlen(source_index_file(s, i)) < 65536, "a path without an end");
    }
    built_files_only(b, "m");
    const struct source_function *f = source_index_find(s, "a", &n);
    for (size_t i = 0; f && i < n; i++)
        require(!strcmp(source_index_text(s, f[i].name), "a") && f[i].file < source_index_files(s),
                "another function");
}

/* With the right checksum: else nothing would be read. */
static void parse(const uint8_t *data, size_t size)
{
    struct index_header h = {.magic = INDEX_MAGIC};
    struct source_index *s;
    char *bytes = mem_alloc(size + sizeof(h));
    if (size >= 24) {
        memcpy(&h.functions, data, 24);
        data += 24;
        size -= 24;
    }
    h.functions %= 64;
    h.files %= 64;
    h.words %= 64;
    const size_t tables = h.functions * sizeof(struct source_function) + h.files * sizeof(uint32_t) +
                          h.words * sizeof(struct source_word);
    h.texts_bytes = size > tables ? (uint32_t)(size - tables) : 0;
    h.checksum = index_hash(INDEX_HASH, data, size);
    memcpy(bytes, &h, sizeof(h));
    memcpy(bytes + sizeof(h), data, size);
    if (source_index_parse(&s, bytes, sizeof(h) + size))
        return;
    struct built_files *b = built_files_new(s, "CONFIG_A=y\nCONFIG_B=m\n", "x");
    find_all(s, b);
    built_files_free(b);
    source_index_free(s);
}

static void take_file(void *arg, const char *path, const char *text, size_t len)
{
    (void)arg;
    require(strlen(path) < 4096 && strlen(text) <= len && len <= TREE_FILE_MAX, "a file that is none");
}

static void unpack(const uint8_t *data, size_t size)
{
    char path[64];
    struct error e;
    const int fd = memfd_create("archive", MFD_CLOEXEC);
    require(write(fd, data, size) == (ssize_t)size, "no memory");
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    tar_files_read(path, take_file, NULL, &e);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size);
    if (!size)
        (void)0;
    else if (*data % 5 == 4)
        parse(data + 1, size - 1);
    else if (*data % 5 == 3)
        unpack(data + 1, size - 1);
    else if (*data % 5 == 2)
        makefile_words_find(text + 1, take_word, NULL);
    else
        scan((const char *)data + 1, size - 1);
    free(text);
    return 0;
}
