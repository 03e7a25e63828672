/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef VIEW_PAGE_ASSET_H
#define VIEW_PAGE_ASSET_H

/* The script and the style of the page (web/page.js, web/page.css), made C by embed_page.py. */

#include <stddef.h>

extern const char page_script[], page_style[];
extern const size_t page_script_bytes, page_style_bytes;
/** "sha256-...", as a policy for content names them. */
extern const char page_script_hash[], page_style_hash[];

#endif
