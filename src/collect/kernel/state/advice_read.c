/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/state/advice_read.h"

#include <string.h>

#include "base/units.h"
#include "collect/kernel/proc_text.h"
#include "collect/kernel/state/boot_log.h"

#define NAME_BYTES 64u /* MODULE_NAME_LEN */

void modules_parse(struct advice_input *in, const char *text)
{
    char line[PROC_TEXT_BYTES], name[NAME_BYTES];
    while (proc_text_next(&text, line)) {
        uint64_t bytes, users;
        const char *at = line;
        if (!proc_text_word(&at, name, sizeof(name)) || !proc_text_number(&at, &bytes) ||
            bytes > MEMORY_VALUE_MAX ||
            !proc_text_number(&at, &users)) /* a kernel that cannot unload modules has "-" */
            continue;
        *vec_push(&in->modules) = (struct advice_module){.name = mem_strdup(name),
                                                         .bytes = bytes,
                                                         .users = users,
                                                         .permanent = strstr(at, "[permanent]") != NULL};
    }
    in->has_modules = true;
}

static void raise(struct advice_figure *f, uint64_t value)
{
    if (value <= MEMORY_VALUE_MAX && (!f->known || value > f->value))
        *f = (struct advice_figure){true, value};
}

void dentry_state_parse(struct advice_input *in, const char *text)
{
    uint64_t all, unused;
    if (!proc_text_number(&text, &all) || !proc_text_number(&text, &unused))
        return;
    raise(&in->dentries, all);
    in->dentries_unused = (struct advice_figure){true, unused};
}

void inode_nr_parse(struct advice_input *in, const char *text)
{
    uint64_t all;
    if (proc_text_number(&text, &all))
        raise(&in->inodes, all);
}

void command_line_parse(struct advice_input *in, const char *text)
{
    char word[PROC_TEXT_BYTES];
    static const char option[] = "log_buf_len=";
    while (proc_text_word(&text, word, sizeof(word))) {
        uint64_t bytes;
        word[strcspn(word, "\n")] = '\0';
        if (!strcmp(word, "--")) /* what follows is for the first program */
            return;
        if (!strncmp(word, option, strlen(option)) && !units_parse_size(word + strlen(option), &bytes))
            in->log_option_bytes = bytes;
    }
}

void release_parse(struct advice_input *in, const char *text)
{
    uint64_t major, minor;
    if (!proc_text_number(&text, &major) || *text++ != '.' || !proc_text_number(&text, &minor) ||
        major > 1000 || minor > 1000)
        return;
    in->major = (unsigned)major;
    in->minor = (unsigned)minor;
}

static struct advice_figure figure(const struct memory_state *s, enum memory_figure f)
{
    return (struct advice_figure){memory_state_has(s, f), s->figures[f]};
}

static void take_memory(struct advice_input *in, memory_text text, void *arg, uint64_t page_bytes)
{
    struct memory_state s;
    memory_parse(&s, text, arg, page_bytes);
    advice_take_memory(in, &s);
    in->huge_free = figure(&s, MEMORY_POOL_FREE);
    in->huge_reserved = figure(&s, MEMORY_POOL_PROMISED);
    in->huge_bytes = figure(&s, MEMORY_POOL_PAGE_BYTES);
    in->cma_bytes = figure(&s, MEMORY_CMA_TOTAL);
    memory_state_release(&s);
}

void advice_read(struct advice_input *in, memory_text text, void *arg, uint64_t page_bytes)
{
    static const struct {
        const char *path;
        void (*parse)(struct advice_input *in, const char *text);
    } others[] = {
        {KERNEL_STATE_MODULES, modules_parse}, {KERNEL_STATE_DENTRIES, dentry_state_parse},
        {KERNEL_STATE_INODES, inode_nr_parse}, {KERNEL_STATE_CMDLINE, command_line_parse},
        {KERNEL_STATE_RELEASE, release_parse}, {KERNEL_STATE_BOOT_LOG, boot_log_parse},
    };
    take_memory(in, text, arg, page_bytes);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        const char *found = text(arg, others[i].path);
        if (found)
            others[i].parse(in, found);
    }
}
