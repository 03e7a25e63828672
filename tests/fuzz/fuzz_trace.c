/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of src/collect/kernel/trace/trace_page: whatever a page of the kernel's trace buffers says, no record
 * reaches beyond it, and it has an end. The first byte chooses the width of the header.
 */
#include "require.h"

#include "collect/kernel/trace/trace_page.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[256];
    struct trace_page_layout layout;
    snprintf(text, sizeof(text),
             "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t "
             "commit;\toffset:8;\tsize:%d;\n"
             "\tfield: char data;\toffset:16;\tsize:4080;\n",
             size ? *data % 10 : 8);
    if (trace_page_layout_parse(&layout, text))
        return 0;
    struct trace_page p;
    struct trace_record r;
    size_t taken = 0, bytes = size ? size - 1 : 0;
    uint8_t *page = malloc(bytes + 1), sum = 0; /* the end is where the sanitizer sees it */
    memcpy(page, data + (size != 0), bytes);
    int found = trace_page_begin(&p, page, bytes, &layout);
    while (!found && (found = trace_page_next(&p, &r)) > 0) {
        require(r.data >= page + layout.data_at && r.data + r.bytes <= page + bytes,
                "a record outside the page");
        for (uint32_t i = 0; i < r.bytes; i++)
            sum += r.data[i];
        require(++taken <= bytes, "more records than bytes");
        found = 0;
    }
    free(page);
    return sum == 1 && taken == SIZE_MAX;
}
