/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/mounts.h"

#include <string.h>

#include "base/read_file.h"
#include "collect/kernel/proc_text.h"

#define MOUNTINFO_BYTES_MAX (64u << 20)

static char *take_word(const char **at, const char *end)
{
    const char *blank = memchr(*at, ' ', (size_t)(end - *at));
    char *word = proc_text_unescape(*at, (size_t)((blank ? blank : end) - *at));
    *at = blank ? blank + 1 : end;
    return word;
}

static void skip_words(const char **at, const char *end, unsigned n)
{
    for (; n; n--) {
        const char *blank = memchr(*at, ' ', (size_t)(end - *at));
        *at = blank ? blank + 1 : end;
    }
}

/* Parses "31 23 0:28 /root /point rw,relatime shared:1 - type source options". */
static void take_line(struct mounts *m, const char *at, const char *end)
{
    static const char separator[] = " - ";
    skip_words(&at, end, 3);
    const char *behind = memmem(at, (size_t)(end - at), separator, strlen(separator));
    if (!behind)
        return;
    struct mount *new = vec_push(&m->all);
    new->root = take_word(&at, behind);
    new->point = take_word(&at, behind);
    at = behind + strlen(separator);
    new->type = take_word(&at, end);
    skip_words(&at, end, 1);
    new->options = take_word(&at, end);
}

void mounts_parse(struct mounts *m, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        take_line(m, text, text + len);
        text += len + (text[len] == '\n');
    }
}

int mounts_read(struct mounts *m)
{
    struct buf text = BUF_INIT;
    *m = (struct mounts){.all = {0}};
    int bad = file_read("/proc/self/mountinfo", MOUNTINFO_BYTES_MAX, &text);
    if (!bad)
        mounts_parse(m, buf_str(&text));
    buf_release(&text);
    return bad;
}

void mounts_release(struct mounts *m)
{
    vec_each (struct mount, it, &m->all) {
        free(it->root);
        free(it->point);
        free(it->type);
        free(it->options);
    }
    vec_release(&m->all);
}
