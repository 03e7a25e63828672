/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/record/import/import_source.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "symbol/kallsyms.h"
#include "symbol/kernel_source.h"

/* "alloc_pipe_info+0x4a [ext4]", taken apart. */
struct parts {
    char *function, *module;
    uint64_t offset; /* of the return address */
};

static struct parts split(const char *text)
{
    const char *plus = strstr(text, "+0x"), *bracket = strstr(text, " [");
    size_t len = plus ? (size_t)(plus - text) : bracket ? (size_t)(bracket - text) : strlen(text);
    return (struct parts){.function = mem_strndup(text, len),
                          .module =
                              bracket ? mem_strndup(bracket + 2, strcspn(bracket + 2, "]")) : mem_strdup(""),
                          .offset = plus ? strtoull(plus + 3, NULL, 16) : 0};
}

static void release(struct parts *p)
{
    free(p->function);
    free(p->module);
}

enum function_found import_source_frames(struct kernel_source *source, const struct kallsyms *symbols,
                                         const struct import_call *call, struct symbol_frames *out)
{
    struct parts p = split(call->text);
    enum function_found found = FUNCTION_NONE;
    if (call->address && symbols && symbols->stext && !*p.module) {
        if (call->address > symbols->stext &&
            kernel_source_offset_frames(source,
                                        kallsyms_byte_of_frame(symbols, call->address) - symbols->stext, out))
            found = FUNCTION_ONE;
    }
    if (found == FUNCTION_NONE && p.offset) {
        const struct kernel_place place = {
            .module = p.module, .function = p.function, .offset = p.offset - 1, .bytes = call->bytes};
        found = kernel_source_place_frames(source, &place, out);
    }
    release(&p);
    return found;
}

bool import_source_is_several(struct kernel_source *source, const char *text)
{
    struct parts p = split(text);
    bool several = kernel_source_is_several(source, p.module, p.function);
    release(&p);
    return several;
}
