/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/mapping_text.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

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

void mapping_text_add_printable(struct buf *b, const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f || *text == '\\')
            buf_printf(b, "\\%03o", (unsigned)(unsigned char)*text);
        else
            buf_add(b, text, 1);
}

/* The names stand from the file up to the root. */
static void add_path(struct buf *b, const struct path_text *p, bool printable)
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
        if (printable)
            mapping_text_add_printable(b, names[n]);
        else
            buf_addstr(b, names[n]);
    }
}

static bool get_path(const struct sys_session *s, const struct process_mapping *m, struct path_text *text)
{
    const struct path_key key = {.inode = m->inode, .device = m->device};
    if (!m->device || bpf_map_lookup_elem(sys_map(s, "paths"), &key, text))
        return false;
    text->names[sizeof(text->names) - 1] = '\0';
    return true;
}

/* Returns whether the path of a deleted file leads to another one of that file system now, as its process sees it. */
static bool is_replaced(const struct process_mapping *m, const struct path_text *text)
{
    struct buf b = BUF_INIT;
    struct stat now;
    if (!m->deleted || !text->pid || text->flags & (PATH_CUT | PATH_NOWHERE))
        return false;
    buf_printf(&b, "/proc/%u/root", text->pid);
    add_path(&b, text, false);
    const bool is = !stat(buf_str(&b), &now) && now.st_ino != m->inode &&
                    major(now.st_dev) == m->device >> 20 && minor(now.st_dev) == (m->device & 0xfffff);
    buf_release(&b);
    return is;
}

const char *mapping_text_kind(const struct sys_session *s, const struct process_mapping *m)
{
    struct path_text text;
    if ((m->class != MAPPING_SHARED && m->class != MAPPING_FILE) || !get_path(s, m, &text))
        return mapping_text_class(m->class);
    if (text.flags & PATH_NOWHERE && !strncmp(text.names, "memfd:", 6))
        return "memfd";
    if (text.flags & PATH_NOWHERE && !strncmp(text.names, "SYSV", 4))
        return "sysv";
    return m->class == MAPPING_SHARED ? "shmem" : mapping_text_class(m->class);
}

void mapping_text_add(const struct sys_session *s, struct buf *b, const struct process_mapping *m)
{
    struct path_text text;
    bool replaced = false;
    if (!m->device) {
        buf_printf(b, "[%s]", mapping_text_class(m->class));
        return;
    }
    if (!get_path(s, m, &text)) {
        buf_printf(b, "inode %llu of device %u:%u", (unsigned long long)m->inode, m->device >> 20,
                   m->device & 0xfffff);
    } else {
        add_path(b, &text, true);
        buf_addstr(b, text.flags & PATH_RENAMED ? " (renamed)" : "");
        replaced = is_replaced(m, &text);
    }
    buf_addstr(b, replaced ? " (replaced)" : m->deleted ? " (deleted)" : "");
}
