/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of page_owner: whatever the text is, a block that counts as whole has a first line and a place, and its
 * texts end.
 */
#include "require.h"

#include "collect/kernel/page_owner.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct page_owner_block *b)
{
    require(b->times && b->order <= 64, "an order of %u", b->order);
    require(memchr(b->comm, '\0', sizeof(b->comm)) && memchr(b->type, '\0', sizeof(b->type)) &&
                memchr(b->block_type, '\0', sizeof(b->block_type)),
            "a text without an end");
    require(!strchr(buf_str(&b->gfp_names), ')') && !strstr(buf_str(&b->stack), "\n\n"), "names or a stack");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct page_owner p = {.times = 0};
    const char *text = (const char *)data, *end = text + size;
    page_owner_is_text(text, size);
    for (const char *line = text; line < end;) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        const size_t len = next ? (size_t)(next - line) : (size_t)(end - line);
        if (page_owner_line(&p, line, len))
            check(&p.block);
        line += len + 1;
    }
    if (page_owner_end(&p))
        check(&p.block);
    page_owner_release(&p);
    return 0;
}
