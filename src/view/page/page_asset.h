/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_PAGE_ASSET_H
#define VIEW_PAGE_ASSET_H

/* The script and the style of the page (web/page.js, web/page.css), and the script that shows the events of a trace
 * (web/events.js), made C by embed_page.py. */

#include <stddef.h>

extern const char page_script[], page_style[], page_events[];
extern const size_t page_script_bytes, page_style_bytes, page_events_bytes;
/** "sha256-...", as a policy for content names them. */
extern const char page_script_hash[], page_style_hash[], page_events_hash[];

#endif
