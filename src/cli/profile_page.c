/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/profile_page.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "allium_version.h"
#include "cli/output_file.h"
#include "cli/wrapper_lists.h"
#include "view/page/html.h"
#include "view/page/html_profile.h"
#include "view/profile/report.h"

#define TEXT_ROWS 50 /* for readers without JavaScript */

enum rollup_sort profile_page_metric(const struct profile *p, const struct rollup_options *like)
{
    struct rollup_options o = *like;
    o.group = ROLLUP_BY_PROCESS;
    struct rollup *r = rollup_new(p, &o);
    bool is_live = r->total.of[ROLLUP_LIVE].bytes.value > 0 || !rollup_known(&r->total, ROLLUP_PEAK);
    rollup_free(r);
    return is_live ? ROLLUP_SORT_LIVE : ROLLUP_SORT_PEAK;
}

/* What `allium report` shows first. */
static void add_text(struct buf *text, const struct profile *p, const struct profile_page *page)
{
    struct sink out = sink_to_buf(text);
    struct rollup_options o = *page->like;
    o.group = ROLLUP_BY_FUNCTION;
    o.sort = profile_page_metric(p, page->like);
    struct rollup *r = rollup_new(p, &o);
    const struct report_options ro = {.style = {.file = true, .utf8 = true},
                                      .source = page->label,
                                      .filter = page->filter,
                                      .top = TEXT_ROWS,
                                      .frames = 0};
    report_write(&out, r, &ro);
    rollup_free(r);
}

void profile_page_add_title(struct buf *b, const struct profile_page *page, const char *words)
{
    buf_printf(b, "%s: %s%s%s", frame_basename(page->label), words, page->filter ? ", " : "",
               page->filter ? page->filter : "");
}

void profile_page_write(struct sink *out, struct profile *p, const struct profile_page *page)
{
    struct buf title = BUF_INIT, text = BUF_INIT;
    struct page_blob blob;
    wrapper_lists_mark(p);
    profile_page_add_title(&title, page, "memory");
    add_text(&text, p, page);
    page_blob_begin(&blob);
    json_text(&blob.json, "schema", "allium-page");
    json_whole(&blob.json, "version", 1);
    html_profile_add(&blob, p, page->like);
    html_write(out,
               &(struct html_page){
                   .title = buf_str(&title), .text = buf_str(&text), .creator = "allium " ALLIUM_VERSION},
               &blob);
    buf_release(&title);
    buf_release(&text);
}

int profile_page_save(const char *path, bool force, struct profile *p, const struct profile_page *page,
                      struct error *e)
{
    FILE *file = output_file_open(path, force, e);
    if (!file)
        return -EEXIST;
    struct sink out = sink_to_file(file);
    int bad = ftruncate(fileno(file), 0) && errno != EINVAL ? -errno : 0; /* EINVAL: a pipe */
    profile_page_write(&out, p, page);
    bad = bad ? bad : sink_finish(&out);
    if (fclose(file) && !bad)
        bad = -errno;
    return bad ? error_set(e, -bad, "%s: %s", path, strerror(-bad)) : 0;
}
