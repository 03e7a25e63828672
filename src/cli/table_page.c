/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/table_page.h"

#include <errno.h>
#include <unistd.h>

#include "allium_version.h"
#include "view/page/html.h"
#include "view/page/html_table.h"
#include "view/table/table_view.h"

#define TEXT_ROWS 50u /* for readers without JavaScript */

static void add_text(struct buf *b, const struct table_page *page)
{
    struct sink out = sink_to_buf(b);
    const struct text_style style = {.file = true, .utf8 = true};
    const struct table *all = page->table;
    struct table *t = table_new(all->name, all->version, all->columns, all->n_columns);
    t->hidden = all->hidden;
    table_copy_rows(t, all);
    if (!page->as_it_is)
        table_sort(t, page->weight, TABLE_USUAL);
    table_cut(t, TEXT_ROWS);
    buf_printf(b, "%s\n\n", page->about);
    if (table_rows(all) > TEXT_ROWS)
        buf_printf(b, "%u of %u rows:\n\n", TEXT_ROWS, table_rows(all));
    table_view_text(&out, t, &style);
    buf_printf(b, "\n%s", page->notes);
    table_free(t);
}

int table_page_write(FILE *file, const struct table_page *page)
{
    struct sink out = sink_to_file(file);
    struct buf text = BUF_INIT;
    struct page_blob blob;
    int bad = ftruncate(fileno(file), 0) && errno != EINVAL ? -errno : 0; /* EINVAL: a pipe */
    add_text(&text, page);
    page_blob_begin(&blob);
    json_text(&blob.json, "schema", "allium-page");
    json_whole(&blob.json, "version", 1);
    html_table_add(&blob, page->table, page->weight, page->times_ns);
    html_write(&out,
               &(struct html_page){
                   .title = page->title, .text = buf_str(&text), .creator = "allium " ALLIUM_VERSION},
               &blob);
    buf_release(&text);
    bad = bad ? bad : sink_finish(&out);
    if (fclose(file) && !bad)
        bad = -errno;
    return bad;
}
