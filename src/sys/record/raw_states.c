/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/raw_states.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/read_file.h"

#define TEXT_MAX  (16u << 20)
#define DEPTH_MAX 8u
#define MOMENTS   4096u

void raw_states_put(struct raw_folder *f, const struct kernel_state *s, uint64_t taken_ns)
{
    struct buf name = BUF_INIT;
    vec_each (const struct kernel_text, t, &s->texts) {
        buf_reset(&name);
        buf_printf(&name, "state/%" PRIu64 "%s", taken_ns, t->path);
        raw_folder_put(f, buf_str(&name), buf_str(&t->text), t->text.len);
    }
    buf_release(&name);
}

static DIR *open_folder(int folder, const char *name)
{
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !d)
        close(fd);
    return d;
}

/* `path`: of the folder, as in the machine; "" at first. */
static void take_texts(struct kernel_state *s, DIR *d, const char *path, unsigned depth)
{
    struct buf name = BUF_INIT, text = BUF_INIT;
    for (struct dirent *entry = readdir(d); entry; entry = readdir(d)) {
        if (entry->d_name[0] == '.')
            continue;
        buf_reset(&name);
        buf_printf(&name, "%s/%s", path, entry->d_name);
        DIR *below = depth ? open_folder(dirfd(d), entry->d_name) : NULL;
        if (below)
            take_texts(s, below, buf_str(&name), depth - 1);
        else if (!file_read_at(dirfd(d), entry->d_name, TEXT_MAX, &text))
            kernel_state_add(s, buf_str(&name), buf_str(&text), text.len);
        buf_reset(&text);
    }
    closedir(d);
    buf_release(&name);
    buf_release(&text);
}

static int by_time(const void *a, const void *b)
{
    const struct raw_state *x = a, *y = b;
    return (x->taken_ns > y->taken_ns) - (x->taken_ns < y->taken_ns);
}

void raw_states_load(struct raw_states *s, const char *path)
{
    struct buf folder = BUF_INIT;
    buf_printf(&folder, "%s/state", path);
    DIR *d = open_folder(AT_FDCWD, buf_str(&folder));
    for (struct dirent *entry = d ? readdir(d) : NULL; entry && s->moments.len < MOMENTS;
         entry = readdir(d)) {
        uint64_t taken_ns;
        int end = 0;
        if (sscanf(entry->d_name, "%" SCNu64 "%n", &taken_ns, &end) != 1 || entry->d_name[end])
            continue;
        DIR *texts = open_folder(dirfd(d), entry->d_name);
        if (!texts)
            continue;
        struct raw_state *moment = vec_push(&s->moments);
        *moment = (struct raw_state){.taken_ns = taken_ns};
        take_texts(&moment->state, texts, "", DEPTH_MAX);
    }
    if (d)
        closedir(d);
    if (s->moments.len)
        qsort(s->moments.at, s->moments.len, sizeof(*s->moments.at), by_time);
    buf_release(&folder);
}

void raw_states_release(struct raw_states *s)
{
    vec_each (struct raw_state, moment, &s->moments)
        kernel_state_release(&moment->state);
    vec_release(&s->moments);
}
