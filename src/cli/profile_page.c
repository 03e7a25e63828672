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
#include "view/page/html_cells.h"
#include "view/page/html_profile.h"
#include "view/profile/report.h"

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
                                      .top = PROFILE_PAGE_TEXT_ROWS,
                                      .frames = 0};
    report_write(&out, r, &ro);
    rollup_free(r);
}

static void begin(struct page_blob *b, const struct profile_page *page)
{
    page_blob_begin(b);
    json_text(&b->json, "schema", "allium-page");
    json_whole(&b->json, "version", 1);
    if (page->events)
        html_events_add(page->events, b);
}

uint32_t profile_page_fewer(uint32_t nodes, size_t size, uint64_t limit)
{
    const uint32_t most = (uint32_t)(nodes * 0.9 * (double)limit / (double)size);
    return most < PROFILE_PAGE_LEAST_NODES ? PROFILE_PAGE_LEAST_NODES : most;
}

void profile_page_note_rest(struct buf *text, uint32_t all, uint32_t most)
{
    buf_printf(text,
               "\nOf %u calls the %u with most memory have boxes of their own; the others are in boxes "
               "[rest]. --html-size makes room for more.\n",
               all, most);
}

/* Of a profile that is too large for the page, fewer and fewer calls, until it fits. */
static struct call_tree *fit_tree(struct page_blob *b, struct buf *text, const struct profile *p,
                                  const struct profile_page *page, uint64_t limit)
{
    for (uint32_t most = 0;;) {
        struct call_tree *t = call_tree_new(p, page->like);
        const uint32_t all = (uint32_t)t->nodes.len;
        if (most)
            call_tree_prune(t, most, NULL);
        begin(b, page);
        html_profile_add(b, t, p, page->like, 0);
        const size_t size = page_blob_pack(b);
        if (size > limit && (!most || most > PROFILE_PAGE_LEAST_NODES)) {
            page_blob_release(b);
            call_tree_free(t);
            most = profile_page_fewer(most ? most : all, size, limit);
            continue;
        }
        if (most)
            profile_page_note_rest(text, all, most);
        return t;
    }
}

/* Every how many stored moments there is room for in so many bytes; 0: for none. */
static uint32_t fit_moments(const struct call_tree *t, const struct profile *p, uint64_t room)
{
    for (uint32_t stride = 1; stride < p->moments.len; stride *= 2) {
        struct page_blob b;
        page_blob_begin(&b);
        html_moments_add(&b, t, p, stride);
        const size_t size = page_blob_pack(&b);
        page_blob_release(&b);
        if (size + size / 64 <= room) /* some more, as both parts are compressed together in the end */
            return stride;
    }
    return 0;
}

/* The tree has precedence over the stored moments: these take what room is left. If there is a [rest], nothing is known
 * of its cells, and so of its past. */
static void add_data(struct page_blob *b, struct buf *text, const struct profile *p,
                     const struct profile_page *page)
{
    const uint64_t limit = page->most_bytes ? page->most_bytes : PROFILE_PAGE_BYTES;
    struct call_tree *t = fit_tree(b, text, p, page, limit);
    const size_t size = page_blob_pack(b);
    const bool has_moments = p->moments.len > 1 && !page->like->keep_sample;
    uint32_t stride = 0;
    if (has_moments && t->rest_frame == PROFILE_NONE && size < limit)
        stride = fit_moments(t, p, limit - size);
    if (has_moments && stride != 1)
        buf_printf(text,
                   "\nThe page has %s of the recording's stored moments. --html-size makes room for %s.\n",
                   stride ? "only some" : "none", stride ? "all" : "them");
    if (stride) {
        page_blob_release(b);
        begin(b, page);
        html_profile_add(b, t, p, page->like, stride);
    }
    call_tree_free(t);
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
    if (page->events)
        html_events_note(page->events, &text);
    add_data(&blob, &text, p, page);
    html_write(out,
               &(struct html_page){.title = buf_str(&title),
                                   .text = buf_str(&text),
                                   .creator = "allium " ALLIUM_VERSION,
                                   .has_events = page->events != NULL},
               &blob);
    buf_release(&title);
    buf_release(&text);
}

FILE *profile_page_open(const char *path, bool force, struct error *e)
{
    FILE *file = output_file_open(path, force, e);
    if (!file || !ftruncate(fileno(file), 0) || errno == EINVAL) /* EINVAL: a pipe */
        return file;
    error_set(e, errno, "%s: %s", path, strerror(errno));
    fclose(file);
    return NULL;
}

int profile_page_close(FILE *file, struct sink *out, const char *path, struct error *e)
{
    int bad = sink_finish(out);
    if (fclose(file) && !bad)
        bad = -errno;
    return bad ? error_set(e, -bad, "%s: %s", path, strerror(-bad)) : 0;
}

int profile_page_save(const char *path, bool force, struct profile *p, const struct profile_page *page,
                      struct error *e)
{
    FILE *file = profile_page_open(path, force, e);
    if (!file)
        return -EEXIST;
    struct sink out = sink_to_file(file);
    profile_page_write(&out, p, page);
    return profile_page_close(file, &out, path, e);
}
