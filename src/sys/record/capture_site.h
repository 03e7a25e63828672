/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_CAPTURE_SITE_H
#define SYS_CAPTURE_SITE_H

/*
 * Which call a row stands for. A function that only allocates for its callers, kstrdup() for example, is a helper: what
 * it allocates is charged to the call of it, as far as the stack tells that.
 *
 * Runs in: the tool. Threads: one. Owns: what it remembers, until capture_sites_release().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/hash_map.h"
#include "sys/record/kernel_capture.h"

/** A call, or an inlined one in it. */
struct capture_site {
    uint64_t call;
    /* how many of the functions that `frames` of kernel_code_names gives are helpers, and inlined */
    uint32_t inlined;
    bool is_helper; /* its function is a helper, and its caller is not known */
};

struct capture_sites {
    const struct kernel_capture *capture;
    struct map known; /* call -> `inlined`, or ALL_HELPERS */
};

void capture_sites_release(struct capture_sites *s);

/** Finds it. `stack` is one of the accounts; one that is not known is the call alone. */
struct capture_site capture_site_find(struct capture_sites *s, uint64_t call, uint32_t stack);

/** Appends "ext4_alloc_inode+0x1f [ext4]", with " (helper)" if it is one. */
void capture_site_add_call(const struct kernel_capture *c, const struct capture_site *site, struct buf *b);
/** The function, with its module: that of the source if it is known. */
void capture_site_add_function(const struct kernel_capture *c, const struct capture_site *site,
                               struct buf *b);
/** "fs/ext4/super.c", or "[unknown] ..." as add_file() of kernel_code_names. The source must be known. */
void capture_site_add_file(const struct kernel_capture *c, const struct capture_site *site, struct buf *b);
/** "fs/ext4/super.c:1359"; nothing if it is not known. */
void capture_site_add_line(const struct kernel_capture *c, const struct capture_site *site, struct buf *b);
/** Sets a text of the last row, by one of these functions; none if it appends nothing. */
void capture_site_put(struct table *t, uint32_t column, const struct kernel_capture *c,
                      const struct capture_site *site,
                      void (*add)(const struct kernel_capture *c, const struct capture_site *site,
                                  struct buf *b));

#endif
