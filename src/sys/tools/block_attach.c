/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/tools/block_attach.h"

#include <errno.h>
#include <inttypes.h>

#include "sys/kernel_enums.h"
#include "sys/kernel_symbol_address.h"

/*
 * Blocks that are followed are known by their frames' numbers, whose lower bits tell a block's beginning. By position
 * an event has the page's address alone, from which these bits come only if struct page is of a power of two of bytes,
 * see frame_of() in blocks.bpf.h.
 */
int block_attach_ready(const struct sys_session *s, struct error *e, const char *advice)
{
    const struct bpf_program *by_address = bpf_object__find_program_by_name(s->object, "raw_alloc");
    if (!s->live || !by_address || !bpf_program__autoload(by_address))
        return 0;
    uint32_t bytes = kernel_struct_bytes("page");
    if (bytes && !(bytes & (bytes - 1)))
        return 0;
    return error_set(e, EOPNOTSUPP,
                     "struct page has %" PRIu32
                     " bytes here, no power of two: a page's address does not tell its frame, %s",
                     bytes, advice);
}
