/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration, and one Makefile. */
#include <string.h>

#include "base/buf.h"
#include "collect/kernel/proc_text.h"
#include "collect/kernel/state/kernel_makefiles.h"
#include "symbol/tree/makefile_words.h"

#define COMPOSED_MOST 4     /* objects that are made of objects that are made of objects ... */
#define PARTS_MOST    20000 /* of one Makefile; a driver has some hundred */

/* ---- the configuration ---- */

void kernel_config_parse(struct kernel_config *c, const char *text)
{
    char line[PROC_TEXT_BYTES];
    while (proc_text_next(&text, line)) {
        const size_t len = strcspn(line, "=");
        bool added;
        if (strncmp(line, "CONFIG_", 7) || !line[len])
            continue;
        const char *value = line + len + 1;
        if (len == 20 && !strncmp(line, "CONFIG_LOG_BUF_SHIFT", len))
            proc_text_number(&value, &c->log_buf_shift);
        if ((*value != 'y' && *value != 'm') || value[1])
            continue;
        map_put(&c->index, line, len, c->modules.len, &added);
        if (added)
            *vec_push(&c->modules) = *value == 'm';
    }
}

void kernel_config_release(struct kernel_config *c)
{
    map_release(&c->index);
    vec_release(&c->modules);
}

/* ---- lines of a Makefile ---- */

/* "ext4-$(CONFIG_EXT4_FS_POSIX_ACL) += acl.o": the word "acl.o" of the base "ext4". */
struct word {
    char *base, *text;
    char *option; /* NULL: it is always there */
    bool several; /* there is another line with this base and word and another option */
};

struct makefile {
    struct VEC(struct word) words;
    struct map by_name; /* base, NUL, text -> index */
    unsigned parts;     /* that were found, of at most PARTS_MOST */
};

static void release(struct makefile *m)
{
    vec_each (struct word, w, &m->words) {
        free(w->base);
        free(w->text);
        free(w->option);
    }
    vec_release(&m->words);
    map_release(&m->by_name);
}

static void add_word(void *arg, const struct makefile_word *w)
{
    struct makefile *m = arg;
    struct buf key = BUF_INIT;
    bool added;
    buf_add(&key, w->base, w->base_len);
    buf_addch(&key, '\0');
    buf_add(&key, w->text, w->len);
    const size_t i = map_put(&m->by_name, buf_str(&key), key.len, m->words.len, &added);
    if (added) {
        *vec_push(&m->words) = (struct word){.base = mem_strndup(w->base, w->base_len),
                                             .text = mem_strndup(w->text, w->len),
                                             .option = w->option ? mem_strdup(w->option) : NULL};
    } else {
        const char *before = m->words.at[i].option;
        m->words.at[i].several =
            m->words.at[i].several || !w->option || !before || strcmp(before, w->option) != 0;
    }
    buf_release(&key);
}

/* ---- what options bring ---- */

static struct advice_option *option_named(struct advice_input *in, const struct kernel_config *c,
                                          const char *name)
{
    bool added;
    const size_t set = map_get(&c->index, name, strlen(name));
    if (set == MAP_NONE)
        return NULL;
    const size_t i = map_put(&in->option_index, name, strlen(name), in->options.len, &added);
    if (added)
        *vec_push(&in->options) =
            (struct advice_option){.name = mem_strdup(name), .module = c->modules.at[set]};
    return &in->options.at[i];
}

static void add_path(struct advice_option *o, const char *folder, const char *word)
{
    struct buf path = BUF_INIT;
    const size_t len = strlen(word);
    const bool is_folder = word[len - 1] == '/';
    buf_printf(&path, "%s%.*s%s", folder, (int)(is_folder ? len : len - 2), word, is_folder ? "" : ".c");
    vec_each (char *const, known, &o->paths)
        if (!strcmp(*known, buf_str(&path))) {
            buf_release(&path);
            return;
        }
    *vec_push(&o->paths) = buf_detach(&path);
}

/* The object, and what it is made of. */
static void bring(struct advice_option *o, struct makefile *m, const char *folder, const char *word,
                  int depth)
{
    const size_t len = strlen(word);
    if (m->parts++ == PARTS_MOST) {
        m->parts--;
        return;
    }
    add_path(o, folder, word);
    if (word[len - 1] == '/' || depth == COMPOSED_MOST)
        return;
    vec_each (const struct word, part, &m->words)
        if (strlen(part->base) == len - 2 && !strncmp(part->base, word, len - 2) &&
            strcmp(part->text, word) != 0)
            bring(o, m, folder, part->text, depth + 1);
}

void makefile_parse(struct advice_input *in, const struct kernel_config *c, const char *folder,
                    const char *text)
{
    struct makefile m = {.words = {0}};
    makefile_words_find(text, add_word, &m);
    vec_each (const struct word, w, &m.words) {
        struct advice_option *o = w->option && !w->several ? option_named(in, c, w->option) : NULL;
        if (o)
            bring(o, &m, folder, w->text, 0);
    }
    release(&m);
}
