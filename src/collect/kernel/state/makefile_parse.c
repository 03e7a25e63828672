/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration, and one Makefile. */
#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "collect/kernel/proc_text.h"
#include "collect/kernel/state/kernel_makefiles.h"

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

static void add_word(struct makefile *m, const char *base, size_t base_len, const char *option,
                     const char *text, size_t len)
{
    struct buf key = BUF_INIT;
    bool added;
    if (!len || (text[len - 1] != '/' && (len < 3 || strncmp(text + len - 2, ".o", 2))) ||
        memchr(text, '$', len) || *text == '/' || memmem(text, len, "..", 2))
        return;
    buf_add(&key, base, base_len);
    buf_addch(&key, '\0');
    buf_add(&key, text, len);
    const size_t i = map_put(&m->by_name, buf_str(&key), key.len, m->words.len, &added);
    if (added) {
        *vec_push(&m->words) = (struct word){.base = mem_strndup(base, base_len),
                                             .text = mem_strndup(text, len),
                                             .option = option ? mem_strdup(option) : NULL};
    } else {
        const char *before = m->words.at[i].option;
        m->words.at[i].several = m->words.at[i].several || !option || !before || strcmp(before, option) != 0;
    }
    buf_release(&key);
}

/* The name CONFIG_X of "$(CONFIG_X)" or "$(subst m,y,$(CONFIG_X))". Returns NULL if there is none, or more than one. */
static char *option_of(const char *suffix, size_t len)
{
    const char *at = memmem(suffix, len, "$(CONFIG_", 9);
    if (!at)
        return NULL;
    at += 2;
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '_')
        n++;
    const size_t rest = len - (size_t)(at + n - suffix);
    return at + n > suffix + len || memmem(at + n, rest, "CONFIG_", 7) ? NULL : mem_strndup(at, n);
}

/* "base-suffix += words": the suffix is an option, or y, m or objs. Other lines are passed over. */
static void take_line(struct makefile *m, const char *line)
{
    const char *base = line + strspn(line, " \t");
    const char *equals = strchr(base, '=');
    if (!equals)
        return;
    const char *end = equals;
    while (end > base && strchr("+:? \t", end[-1]))
        end--;
    const char *dash = NULL; /* names have dashes, too: the one before the option, or else the last one */
    const char *dollar = memmem(base, (size_t)(end - base), "-$(", 3);
    for (const char *at = base; at < end; at++)
        if (*at == '-' && (!dollar || at <= dollar))
            dash = at;
    if (!dash || dash == base || memchr(base, ' ', (size_t)(dash - base)))
        return;
    const char *suffix = dash + 1;
    const size_t len = (size_t)(end - suffix);
    char *option = option_of(suffix, len);
    const bool always =
        (len == 1 && (*suffix == 'y' || *suffix == 'm')) || (len == 4 && !strncmp(suffix, "objs", 4));
    for (const char *at = equals + 1; option || always;) {
        at += strspn(at, " \t");
        const size_t word = strcspn(at, " \t");
        if (!word)
            break;
        add_word(m, base, (size_t)(dash - base), option, at, word);
        at += word;
    }
    free(option);
}

/* Lines that end with a backslash go on; what follows # is a comment. */
static void take_text(struct makefile *m, const char *text)
{
    struct buf line = BUF_INIT;
    while (*text) {
        size_t len = strcspn(text, "\n");
        const bool goes_on = len && text[len - 1] == '\\';
        buf_add(&line, text, len - goes_on);
        buf_addch(&line, ' ');
        text += len + (text[len] == '\n');
        if (goes_on)
            continue;
        line.data[strcspn(line.data, "#")] = '\0';
        take_line(m, line.data);
        buf_reset(&line);
    }
    buf_release(&line);
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
    take_text(&m, text);
    vec_each (const struct word, w, &m.words) {
        struct advice_option *o = w->option && !w->several ? option_named(in, c, w->option) : NULL;
        if (o)
            bring(o, &m, folder, w->text, 0);
    }
    release(&m);
}
