/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/diff_page.h"

#include <stdlib.h>

#include "allium_version.h"
#include "cli/profile_page.h"
#include "view/page/html.h"
#include "view/page/html_diff.h"

static void pack(struct page_blob *b, struct diff *d, uint32_t most, const double *weights)
{
    page_blob_begin(b);
    json_text(&b->json, "schema", "allium-page");
    json_whole(&b->json, "version", 1);
    html_diff_add(b, d, most, weights);
}

/* Of a diff that is too large for the page, fewer and fewer calls, until it fits. */
static void add_data(struct page_blob *b, struct buf *text, const struct diff_page *page, struct diff *d)
{
    const uint64_t limit = page->most_bytes ? page->most_bytes : PROFILE_PAGE_BYTES;
    double *weights = NULL;
    uint32_t most = 0, all = 0;
    for (;;) {
        pack(b, d, most, weights);
        const size_t size = page_blob_pack(b);
        if (size <= limit || (most && most <= PROFILE_PAGE_LEAST_NODES))
            break;
        page_blob_release(b);
        if (!weights) {
            all = html_diff_weigh(d, NULL);
            weights = mem_array(all, sizeof(*weights));
            html_diff_weigh(d, weights);
        }
        most = profile_page_fewer(most ? most : all, size, limit);
    }
    if (most)
        profile_page_note_rest(text, all, most);
    free(weights);
}

static void add_title(struct buf *b, const struct diff_view_options *o)
{
    buf_printf(b, "%s → %s: change of memory%s%s%s%s", frame_basename(o->source[PROFILE_PAIR_BEFORE]),
               frame_basename(o->source[PROFILE_PAIR_AFTER]), o->per ? " " : "", diff_per_words[o->per],
               o->filter ? ", " : "", o->filter ? o->filter : "");
}

int diff_page_save(const struct diff_page *page, struct diff *d, const struct diff_view_options *o,
                   struct error *e)
{
    struct diff_view_options plain = *o;
    struct buf title = BUF_INIT, text = BUF_INIT;
    struct page_blob blob;
    FILE *file = profile_page_open(page->path, page->force, e);
    if (!file)
        return -1;
    struct sink out = sink_to_buf(&text);
    plain.style = (struct text_style){.file = true, .utf8 = true};
    plain.top = PROFILE_PAGE_TEXT_ROWS;
    plain.frames = 0;
    diff_write(&out, d, &plain);
    add_title(&title, o);
    add_data(&blob, &text, page, d);
    struct sink to_file = sink_to_file(file);
    html_write(&to_file,
               &(struct html_page){
                   .title = buf_str(&title), .text = buf_str(&text), .creator = "allium " ALLIUM_VERSION},
               &blob);
    buf_release(&title);
    buf_release(&text);
    return profile_page_close(file, &to_file, page->path, e);
}
