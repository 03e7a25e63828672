/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/addrspace/vma_history.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define DEAD_MIN 1024 /* fewer unused files are not worth a sweep */

static void make_key(struct buf *key, const char *path, const struct mapping_file *like)
{
    uint64_t numbers[] = {like->major, like->minor, like->inode};
    buf_add(key, numbers, sizeof(numbers));
    buf_addstr(key, path);
}

static void free_file(struct mapping_file *file)
{
    free(file->path);
    free(file);
}

/* Frees the files without references. A map cannot remove a key, so it is made anew from the other files. */
static void sweep(struct mapped_files *files)
{
    size_t kept = 0;
    map_release(&files->map);
    for (size_t i = 0; i < files->files.len; i++) {
        struct mapping_file *file = files->files.at[i];
        if (!file->refs) {
            free_file(file);
            continue;
        }
        struct buf key = BUF_INIT;
        make_key(&key, file->path, file);
        map_put(&files->map, key.data, key.len, kept, NULL);
        buf_release(&key);
        files->files.at[kept++] = file;
    }
    files->files.len = kept;
    files->dead = 0;
}

struct mapping_file *mapped_files_get(struct mapped_files *files, const char *path,
                                      const struct mapping_file *like)
{
    struct buf key = BUF_INIT;
    bool added;
    if (files->dead > DEAD_MIN && files->dead > files->files.len / 2)
        sweep(files);
    make_key(&key, path, like);
    size_t at = map_put(&files->map, key.data, key.len, files->files.len, &added);
    buf_release(&key);
    if (added) {
        struct mapping_file *file = mem_alloc(sizeof(*file));
        *file = *like;
        file->path = mem_strdup(path);
        file->refs = 0;
        *vec_push(&files->files) = file;
    } else if (!files->files.at[at]->refs) {
        files->dead--;
    }
    files->files.at[at]->refs++;
    return files->files.at[at];
}

void mapped_files_put(struct mapped_files *files, struct mapping_file *file)
{
    if (file && !--file->refs)
        files->dead++;
}

void mapped_files_release(struct mapped_files *files)
{
    vec_each (struct mapping_file *, file, &files->files)
        free_file(*file);
    vec_release(&files->files);
    map_release(&files->map);
    files->dead = 0;
}
