/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/page/html.h"

#include <string.h>

#include "view/page/page_asset.h"
#include "view/text/text.h"

/* The character of a well-formed UTF-8 sequence. */
static uint32_t character(const char *at, size_t bytes)
{
    const unsigned char *u = (const unsigned char *)at;
    uint32_t c = bytes == 1 ? u[0] : u[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++)
        c = c << 6 | (u[i] & 0x3f);
    return c;
}

/* Control characters, and those that change the direction in which other characters are shown. */
static bool is_hidden(uint32_t c)
{
    return (c < 0x20 && c != '\n') || (c >= 0x7f && c < 0xa0) || c == 0x061c ||
           (c >= 0x200e && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
           c == 0xfeff || (c & 0xfffe) == 0xfffe; /* no characters: not allowed in XML */
}

static const char *reference(uint32_t c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

void html_add_text(struct buf *b, const char *text)
{
    while (*text) {
        const size_t bytes = text_sequence(text);
        if (!bytes) {
            buf_printf(b, "\\x%02x", (unsigned char)*text++);
            continue;
        }
        const uint32_t c = character(text, bytes);
        if (is_hidden(c))
            buf_printf(b, "\\u%04x", c);
        else if (reference(c))
            buf_addstr(b, reference(c));
        else
            buf_add(b, text, bytes);
        text += bytes;
    }
}

static void write_text(struct sink *out, const char *text)
{
    struct buf b = BUF_INIT;
    html_add_text(&b, text);
    sink_text(out, buf_str(&b));
    buf_release(&b);
}

void html_write(struct sink *out, const struct html_page *page, struct page_blob *blob)
{
    sink_text(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                   "<meta http-equiv=\"Content-Security-Policy\" content=\"");
    sink_printf(out, "default-src 'none'; script-src '%s'", page_script_hash);
    if (page->has_events)
        sink_printf(out, " '%s'", page_events_hash);
    sink_printf(out, "; style-src '%s'; base-uri 'none'; form-action 'none'", page_style_hash);
    sink_text(out,
              "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
              "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"generator\" content=\"");
    write_text(out, page->creator);
    sink_text(out, "\">\n<title>");
    write_text(out, page->title);
    sink_text(out, "</title>\n<style>");
    sink_write(out, page_style, page_style_bytes);
    sink_text(out, "</style>\n</head>\n<body>\n<main id=\"text\"><h1>");
    write_text(out, page->title);
    sink_text(
        out,
        "</h1>\n<p id=\"notice\">This page needs JavaScript for its graphs and tables. What follows is the "
        "text of the report.</p>\n<pre>");
    write_text(out, page->text);
    sink_text(out, "</pre></main>\n<script type=\"text/plain\" id=\"data\">");
    page_blob_write(blob, out);
    sink_text(out, "</script>\n<script>");
    if (page->has_events) {
        sink_write(out, page_events, page_events_bytes);
        sink_text(out, "</script>\n<script>");
    }
    sink_write(out, page_script, page_script_bytes);
    sink_text(out, "</script>\n</body>\n</html>\n");
}
