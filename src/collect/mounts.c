/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/mounts.h"

#include <string.h>

#include "base/file.h"

#define MOUNTINFO_BYTES_MAX (64u << 20)

/* A word up to the next blank; the kernel writes blanks, ends of lines and backslashes as \040. */
static char *take_word(const char **at, const char *end)
{
    struct buf word = BUF_INIT;
    const char *p = *at;
    for (; p < end && *p != ' '; p++) {
        if (*p == '\\' && end - p > 3 && p[1] >= '0' && p[1] <= '3' && p[2] >= '0' && p[2] <= '7' &&
            p[3] >= '0' && p[3] <= '7') {
            buf_addch(&word, (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0')));
            p += 3;
        } else {
            buf_addch(&word, *p);
        }
    }
    *at = p < end ? p + 1 : end;
    return buf_detach(&word);
}

static void skip_words(const char **at, const char *end, unsigned n)
{
    for (; n; n--) {
        const char *blank = memchr(*at, ' ', (size_t)(end - *at));
        *at = blank ? blank + 1 : end;
    }
}

/* "31 23 0:28 /root /point rw,relatime shared:1 - type source options" */
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

void mounts_read(struct mounts *m)
{
    struct buf text = BUF_INIT;
    *m = (struct mounts){.all = {0}};
    if (!file_read("/proc/self/mountinfo", MOUNTINFO_BYTES_MAX, &text))
        mounts_parse(m, buf_str(&text));
    buf_release(&text);
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
