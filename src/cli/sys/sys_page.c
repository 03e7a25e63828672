/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/sys_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/output_file.h"
#include "cli/table_page.h"
#include "view/text/notes.h"

#define ROWS_MAX 1000000u

struct sys_page {
    FILE *file;
    const char *path;
    const struct sys_tool *tool;
    struct table *rows;
    struct VEC(uint64_t) times_ns; /* by row */
    uint64_t left_out;
    bool several; /* reports */
    struct buf notes;
};

struct sys_page *sys_page_open(const char *path, bool force, const struct sys_tool *tool, struct error *e)
{
    FILE *file = output_file_open(path, force, e);
    if (!file)
        return NULL;
    struct sys_page *p = mem_alloc(sizeof(*p));
    *p = (struct sys_page){.file = file, .path = path, .tool = tool};
    p->rows = table_new("sys", 1, tool->columns, tool->n_columns);
    return p;
}

void sys_page_add(struct sys_page *p, const struct table *t, uint64_t time_ns)
{
    const uint32_t n = table_rows(t);
    if (n > ROWS_MAX - p->times_ns.len) {
        p->left_out += n;
        return;
    }
    p->rows->hidden = t->hidden;
    p->several = p->several || (n && p->times_ns.len && !p->tool->event);
    table_copy_rows(p->rows, t);
    for (uint32_t i = 0; i < n; i++)
        *vec_push(&p->times_ns) = time_ns;
}

void sys_page_note(struct sys_page *p, const struct buf *notes)
{
    buf_add(&p->notes, buf_str(notes), notes->len);
}

static int write_page(struct sys_page *p)
{
    struct buf title = BUF_INIT;
    buf_addstr(&title, "allium ");
    sys_tool_add_words(&title, p->tool->name, strlen(p->tool->name));
    if (p->left_out)
        notes_add(&p->notes, "%llu rows are not in the page, which has room for %u",
                  (unsigned long long)p->left_out, ROWS_MAX);
    int bad = table_page_write(p->file, &(struct table_page){.title = buf_str(&title),
                                                             .about = p->tool->summary,
                                                             .table = p->rows,
                                                             .weight = p->tool->weight,
                                                             .as_it_is = p->tool->event != NULL,
                                                             .times_ns = p->several ? p->times_ns.at : NULL,
                                                             .notes = buf_str(&p->notes)});
    buf_release(&title);
    return bad;
}

int sys_page_close(struct sys_page *p, int code)
{
    if (!p)
        return code;
    int bad = 0;
    if (code == EXIT_USAGE || code == EXIT_FAILED || code == EXIT_IMPOSSIBLE)
        fclose(p->file);
    else
        bad = write_page(p);
    if (bad)
        code = command_fail(EXIT_FAILED, "%s: %s", p->path, strerror(-bad));
    table_free(p->rows);
    vec_release(&p->times_ns);
    buf_release(&p->notes);
    free(p);
    return code;
}
