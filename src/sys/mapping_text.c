/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/mapping_text.h"

#include <string.h>

#include "sys/session.h"

#define NAMES_MAX 48 /* of a path; more than programs keep */

static const char *const classes[MAPPING_CLASSES] = {
    [MAPPING_HEAP] = "heap",   [MAPPING_STACK] = "stack",     [MAPPING_ANONYMOUS] = "anonymous",
    [MAPPING_FILE] = "file",   [MAPPING_SHARED] = "shared",   [MAPPING_HUGETLB] = "hugetlb",
    [MAPPING_OTHER] = "other", [MAPPING_UNKNOWN] = "unknown",
};

const char *mapping_text_class(uint32_t class)
{
    return class < MAPPING_CLASSES ? classes[class] : "unknown";
}

static void add_printable(struct buf *b, const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f || *text == '\\')
            buf_printf(b, "\\%03o", (unsigned)(unsigned char)*text);
        else
            buf_add(b, text, 1);
}

/* The names stand from the file up to the root. */
static void add_path(struct buf *b, const struct path_text *p)
{
    const char *names[NAMES_MAX];
    size_t n = 0;
    const uint32_t bytes = p->bytes < sizeof(p->names) ? p->bytes : sizeof(p->names) - 1;
    for (const char *at = p->names; at < p->names + bytes && n < NAMES_MAX; at += strlen(at) + 1)
        names[n++] = at;
    if (p->flags & PATH_CUT)
        buf_addstr(b, "...");
    while (n-- > 0) {
        buf_addstr(b, *names[n] == '/' ? ""
                                       : "/"); /* the root of a file system that is mounted nowhere is "/" */
        add_printable(b, names[n]);
    }
}

void mapping_text_add(const struct sys_session *s, struct buf *b, const struct mapping *m)
{
    const struct path_key key = {.inode = m->inode, .device = m->device};
    struct path_text text;
    if (!m->inode) {
        buf_printf(b, "[%s]", mapping_text_class(m->class));
        return;
    }
    if (bpf_map_lookup_elem(sys_map(s, "paths"), &key, &text)) {
        buf_printf(b, "inode %llu of device %u:%u", (unsigned long long)m->inode, m->device >> 20,
                   m->device & 0xfffff);
    } else {
        text.names[sizeof(text.names) - 1] = '\0';
        add_path(b, &text);
        buf_addstr(b, text.flags & PATH_RENAMED ? " (renamed)" : "");
    }
    buf_addstr(b, m->deleted ? " (deleted)" : "");
}
