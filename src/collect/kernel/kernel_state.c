/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/kernel_state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"
#include "base/read_file.h"
#include "collect/kernel/state/boot_log.h"
#include "symbol/vmlinux.h"

#define TEXT_BYTES_MAX  (16u << 20)
#define VALUE_BYTES_MAX 4096u
#define AREA_BYTES      80 /* of a line: two addresses and a number */
#define VMALLOC_AREA    "0x%" SCNx64 "-0x%" SCNx64 "%n %" SCNu64

static const char *const memory_files[] = {
    "/proc/buddyinfo",     "/proc/meminfo",       "/proc/pagetypeinfo",
    KERNEL_STATE_SLABINFO, KERNEL_STATE_DENTRIES, KERNEL_STATE_INODES,
    "/proc/vmstat",        "/proc/zoneinfo",      NULL,
};

static const char *const kernel_files[] = {KERNEL_STATE_RELEASE, KERNEL_STATE_CMDLINE, NULL};

/* Not "shrink", "validate" and the like, which do something. */
static const char *const slab_attributes[] = {
    "align",       "cpu_partial",       "cpu_slabs",       "destroy_by_rcu",  "hwcache_align",
    "min_partial", "object_size",       "objects",         "objects_partial", "objs_per_slab",
    "order",       "partial",           "reclaim_account", "sheaf_capacity",  "slab_size",
    "slabs",       "slabs_cpu_partial", "total_objects",   "usersize",        NULL,
};

void kernel_state_add(struct kernel_state *s, const char *path, const char *text, size_t bytes)
{
    struct kernel_text *t = vec_push(&s->texts);
    *t = (struct kernel_text){.path = mem_strdup(path), .text = BUF_INIT};
    buf_add(&t->text, text, bytes);
}

static void read_file(struct kernel_state *s, const char *root, const char *path)
{
    struct buf file = BUF_INIT, text = BUF_INIT;
    if (kernel_state_text(s, path))
        return;
    buf_printf(&file, "%s%s", root, path);
    if (!file_read(buf_str(&file), TEXT_BYTES_MAX, &text))
        kernel_state_add(s, path, buf_str(&text), text.len);
    buf_release(&file);
    buf_release(&text);
}

/* Where the areas begin is nobody's business, but how far they are apart is: the lowest one begins at 0. */
static bool read_area(const char *line, uint64_t *begin, uint64_t *end, int *at, uint64_t *bytes)
{
    char head[AREA_BYTES]; /* sscanf(3) looks for the end of the whole text */
    snprintf(head, sizeof(head), "%.*s", (int)strcspn(line, "\n"), line);
    return sscanf(head, VMALLOC_AREA, begin, end, at, bytes) == 3;
}

static void add_areas(struct buf *out, const char *text)
{
    uint64_t lowest = UINT64_MAX, begin, end, bytes;
    bool hashed = false; /* the kernel shows numbers that stand for the addresses (kptr_restrict is 0) */
    int at;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (read_area(line, &begin, &end, &at, &bytes)) {
            lowest = begin < lowest ? begin : lowest;
            hashed = hashed || end - begin != bytes;
        }
    for (const char *line = text; *line; line += *line == '\n') {
        const int len = (int)strcspn(line, "\n");
        if (read_area(line, &begin, &end, &at, &bytes)) {
            if (hashed)
                buf_addch(out, '?');
            else
                buf_printf(out, "0x%" PRIx64 "-0x%" PRIx64, begin - lowest, end - lowest);
            buf_printf(out, "%.*s\n", len - at, line + at);
        }
        line += len;
    }
}

static void take_vmalloc(struct kernel_state *s, const char *text)
{
    struct buf areas = BUF_INIT;
    add_areas(&areas, text);
    kernel_state_add(s, KERNEL_STATE_VMALLOC, buf_str(&areas), areas.len);
    buf_release(&areas);
}

/* Reads a file, and has it taken. */
static void read_and_take(struct kernel_state *s, const char *root, const char *path,
                          void (*take)(struct kernel_state *s, const char *text))
{
    struct buf file = BUF_INIT, text = BUF_INIT;
    buf_printf(&file, "%s%s", root, path);
    if (!file_read(buf_str(&file), TEXT_BYTES_MAX, &text))
        take(s, buf_str(&text));
    buf_release(&file);
    buf_release(&text);
}

/* Of "ext4 1003520 2 mbcache,jbd2, Live 0xffffffffc0000000 (E)" what comes before the address. */
static void take_modules(struct kernel_state *s, const char *text)
{
    struct buf modules = BUF_INIT;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t len = strcspn(line, "\n");
        const char *address = memmem(line, len, " 0x", 3);
        buf_printf(&modules, "%.*s\n", (int)(address ? (size_t)(address - line) : len), line);
    }
    kernel_state_add(s, KERNEL_STATE_MODULES, buf_str(&modules), modules.len);
    buf_release(&modules);
}

static void read_boot_log(struct kernel_state *s, const char *root)
{
    struct buf file = BUF_INIT, text = BUF_INIT;
    buf_printf(&file, "%s" KERNEL_STATE_BOOT_LOG, root);
    if (!boot_log_read(buf_str(&file), &text))
        kernel_state_add(s, KERNEL_STATE_BOOT_LOG, buf_str(&text), text.len);
    buf_release(&file);
    buf_release(&text);
}

static void add_attribute(struct buf *out, int folder, const char *cache, const char *attribute)
{
    char path[NAME_MAX + 32];
    struct buf value = BUF_INIT;
    snprintf(path, sizeof(path), "%s/%s", cache, attribute);
    if (!file_read_at(folder, path, VALUE_BYTES_MAX, &value))
        buf_printf(out, "%s\t%s\t%.*s\n", cache, attribute, (int)strcspn(buf_str(&value), "\n"),
                   buf_str(&value));
    buf_release(&value);
}

/* A merged cache is a link to the one that has its objects. */
static void add_cache(struct buf *out, int folder, const char *name)
{
    char target[NAME_MAX + 1];
    ssize_t len = readlinkat(folder, name, target, sizeof(target) - 1);
    if (len > 0) {
        target[len] = '\0';
        buf_printf(out, "%s\t->\t%s\n", name, target);
        return;
    }
    for (size_t i = 0; slab_attributes[i]; i++)
        add_attribute(out, folder, name, slab_attributes[i]);
}

static void read_slab(struct kernel_state *s, const char *root)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    struct dirent **entries = NULL;
    buf_printf(&path, "%s" KERNEL_STATE_SLAB, root);
    int n = scandir(buf_str(&path), &entries, NULL, alphasort);
    if (n < 0) /* a copy may have the text */
        read_file(s, root, KERNEL_STATE_SLAB);
    int folder = n >= 0 ? open(buf_str(&path), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    for (int i = 0; i < n; i++) {
        if (folder >= 0 && entries[i]->d_name[0] != '.' && !strpbrk(entries[i]->d_name, "\t\n"))
            add_cache(&text, folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    if (folder >= 0) {
        close(folder);
        kernel_state_add(s, KERNEL_STATE_SLAB, buf_str(&text), text.len);
    }
    buf_release(&path);
    buf_release(&text);
}

static void add_build_id(struct kernel_state *s, const unsigned char *id, size_t len)
{
    struct buf text = BUF_INIT;
    for (size_t i = 0; i < len; i++)
        buf_printf(&text, "%02x", id[i]);
    if (len)
        kernel_state_add(s, KERNEL_STATE_BUILD_ID, buf_str(&text), text.len);
    buf_release(&text);
}

static void read_build_id(struct kernel_state *s, const char *root)
{
    unsigned char id[SYMBOL_BUILD_ID_MAX];
    add_build_id(s, id, vmlinux_kernel_build_id(root, id));
}

/* zlib reads a file that is not compressed as it is. */
int kernel_state_add_config(struct kernel_state *s, const char *path)
{
    errno = 0;
    gzFile file = gzopen(path, "re");
    if (!file)
        return errno ? -errno : -ENOMEM;
    char *text = mem_alloc(TEXT_BYTES_MAX);
    int len = gzread(file, text, TEXT_BYTES_MAX);
    gzclose(file);
    if (len > 0)
        kernel_state_add(s, KERNEL_STATE_CONFIG, text, (size_t)len);
    free(text);
    return len > 0 ? 0 : -EBADMSG;
}

/* The kernel has its own configuration, or its package has put it beside it. */
static void read_config(struct kernel_state *s, const char *root)
{
    struct buf path = BUF_INIT;
    const char *release = kernel_state_text(s, KERNEL_STATE_RELEASE);
    buf_printf(&path, "%s" KERNEL_STATE_CONFIG, root);
    if (kernel_state_add_config(s, buf_str(&path)) && release) {
        buf_reset(&path);
        buf_printf(&path, "%s/boot/config-%.*s", root, (int)strcspn(release, "\n"), release);
        kernel_state_add_config(s, buf_str(&path));
    }
    buf_release(&path);
}

void kernel_state_read(struct kernel_state *s, const char *root, unsigned which)
{
    if (which & KERNEL_STATE_SLABS)
        read_file(s, root, KERNEL_STATE_SLABINFO);
    if (which & KERNEL_STATE_MEMORY) {
        for (size_t i = 0; memory_files[i]; i++)
            read_file(s, root, memory_files[i]);
        read_and_take(s, root, KERNEL_STATE_VMALLOC, take_vmalloc);
        read_and_take(s, root, KERNEL_STATE_MODULES, take_modules);
        read_slab(s, root);
    }
    if (which & KERNEL_STATE_KERNEL) {
        for (size_t i = 0; kernel_files[i]; i++)
            read_file(s, root, kernel_files[i]);
        read_build_id(s, root);
        read_config(s, root);
        read_boot_log(s, root);
    }
}

/* Compressed with gzip, or not. */
static void take_config(struct kernel_state *s, const char *text, size_t bytes)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)text, .avail_in = (uInt)bytes};
    if (kernel_state_text(s, KERNEL_STATE_CONFIG))
        return;
    if (bytes < 2 || memcmp(text, "\x1f\x8b", 2) != 0) {
        kernel_state_add(s, KERNEL_STATE_CONFIG, text, bytes);
        return;
    }
    if (inflateInit2(&z, 15 + 16) != Z_OK)
        return;
    char *config = mem_alloc(TEXT_BYTES_MAX);
    z.next_out = (Bytef *)config;
    z.avail_out = TEXT_BYTES_MAX;
    if (inflate(&z, Z_FINISH) == Z_STREAM_END)
        kernel_state_add(s, KERNEL_STATE_CONFIG, config, TEXT_BYTES_MAX - z.avail_out);
    inflateEnd(&z);
    free(config);
}

static bool is_listed(const char *const *files, const char *path)
{
    while (*files && strcmp(*files, path) != 0)
        files++;
    return *files;
}

void kernel_state_add_copy(struct kernel_state *s, const char *path, const char *text, size_t bytes)
{
    unsigned char id[SYMBOL_BUILD_ID_MAX];
    struct buf log = BUF_INIT;
    if (kernel_state_text(s, path))
        return;
    if (is_listed(memory_files, path) || is_listed(kernel_files, path) || !strcmp(path, KERNEL_STATE_SLAB))
        kernel_state_add(s, path, text, bytes);
    else if (!strcmp(path, KERNEL_STATE_VMALLOC))
        take_vmalloc(s, text);
    else if (!strcmp(path, KERNEL_STATE_MODULES))
        take_modules(s, text);
    else if (!strcmp(path, KERNEL_STATE_BUILD_ID))
        add_build_id(s, id, vmlinux_build_id(text, bytes, id, sizeof(id)));
    else if (!strcmp(path, KERNEL_STATE_BOOT_LOG))
        boot_log_add(&log, text);
    else if (!strcmp(path, KERNEL_STATE_CONFIG) || !strncmp(path, "/boot/config-", 13))
        take_config(s, text, bytes);
    if (log.len)
        kernel_state_add(s, KERNEL_STATE_BOOT_LOG, buf_str(&log), log.len);
    buf_release(&log);
}

const char *kernel_state_text(const struct kernel_state *s, const char *path)
{
    vec_each (const struct kernel_text, t, &s->texts)
        if (!strcmp(t->path, path))
            return buf_str(&t->text);
    return NULL;
}

void kernel_state_release(struct kernel_state *s)
{
    vec_each (struct kernel_text, t, &s->texts) {
        free(t->path);
        buf_release(&t->text);
    }
    vec_release(&s->texts);
}
