/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/sys/sys_page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allium_version.h"
#include "cli/command.h"
#include "cli/output_file.h"
#include "view/page/html.h"
#include "view/page/html_table.h"
#include "view/table/table_view.h"
#include "view/text/notes.h"

#define ROWS_MAX  1000000u
#define TEXT_ROWS 50u /* for readers without JavaScript */

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

/* The rows with most, and what was lost. */
static void add_text(struct buf *b, const struct sys_page *p)
{
    struct sink out = sink_to_buf(b);
    const struct text_style style = {.file = true, .utf8 = true};
    struct table *t = table_new("sys", 1, p->tool->columns, p->tool->n_columns);
    t->hidden = p->rows->hidden;
    table_copy_rows(t, p->rows);
    if (!p->tool->event)
        table_sort(t, p->tool->weight, TABLE_USUAL);
    const uint32_t n = table_rows(t);
    table_cut(t, TEXT_ROWS);
    buf_printf(b, "%s\n\n", p->tool->summary);
    if (n > TEXT_ROWS)
        buf_printf(b, "%u of %u rows:\n\n", TEXT_ROWS, n);
    table_view_text(&out, t, &style);
    buf_addch(b, '\n');
    sink_write(&out, buf_str(&p->notes), p->notes.len);
    table_free(t);
}

static void write_page(struct sink *out, const struct sys_page *p)
{
    struct buf title = BUF_INIT, text = BUF_INIT;
    struct page_blob blob;
    buf_printf(&title, "allium sys %s", p->tool->name);
    add_text(&text, p);
    page_blob_begin(&blob);
    json_text(&blob.json, "schema", "allium-page");
    json_whole(&blob.json, "version", 1);
    html_table_add(&blob, p->rows, p->tool->weight, p->several ? p->times_ns.at : NULL);
    html_write(out,
               &(struct html_page){
                   .title = buf_str(&title), .text = buf_str(&text), .creator = "allium " ALLIUM_VERSION},
               &blob);
    buf_release(&title);
    buf_release(&text);
}

int sys_page_close(struct sys_page *p, int code)
{
    if (!p)
        return code;
    int bad = 0;
    if (code == EXIT_USAGE || code == EXIT_FAILED || code == EXIT_IMPOSSIBLE) {
        fclose(p->file);
    } else {
        struct sink out = sink_to_file(p->file);
        if (p->left_out)
            notes_add(&p->notes, "%llu rows are not in the page, which has room for %u",
                      (unsigned long long)p->left_out, ROWS_MAX);
        bad = ftruncate(fileno(p->file), 0) && errno != EINVAL ? -errno : 0; /* a pipe has no length */
        write_page(&out, p);
        bad = bad ? bad : sink_finish(&out);
        if (fclose(p->file) && !bad)
            bad = -errno;
    }
    if (bad)
        code = command_fail(EXIT_FAILED, "%s: %s", p->path, strerror(-bad));
    table_free(p->rows);
    vec_release(&p->times_ns);
    buf_release(&p->notes);
    free(p);
    return code;
}
