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

#define LEAST_NODES 100u
#define TEXT_ROWS   50 /* for readers without JavaScript */

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

/* Of a profile that is too large for the page, fewer and fewer calls, until it fits. */
static void add_data(struct page_blob *b, struct buf *text, const struct profile *p,
                     const struct profile_page *page)
{
    const uint64_t limit = page->most_bytes ? page->most_bytes : PROFILE_PAGE_BYTES;
    for (uint32_t most = 0;;) {
        page_blob_begin(b);
        json_text(&b->json, "schema", "allium-page");
        json_whole(&b->json, "version", 1);
        const uint32_t all = html_profile_add(b, p, page->like, most);
        const size_t size = page_blob_pack(b);
        if (size > limit && (!most || most > LEAST_NODES)) {
            page_blob_release(b);
            most = (uint32_t)((most ? most : all) * 0.9 * (double)limit / (double)size);
            most = most < LEAST_NODES ? LEAST_NODES : most;
            continue;
        }
        if (most)
            buf_printf(
                text,
                "\nOf %u calls the %u with most memory have boxes of their own; the others are in boxes "
                "[rest]. --html-size makes room for more.\n",
                all, most);
        return;
    }
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
    add_data(&blob, &text, p, page);
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
