/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/accounts/account_modules.h"

#include <stdlib.h>

#include "base/mem.h"

void account_modules_name(struct account_rows *rows, const uint32_t *module_of, uint32_t number,
                          const struct symbol_module *m, uint64_t back, struct symbols *symbols,
                          account_name_fn *name, void *arg)
{
    struct VEC(struct account_row *) of = {0};
    for (size_t i = 0; i < rows->len; i++)
        if (module_of[i] == number)
            *vec_push(&of) = &rows->at[i];
    if (!of.len)
        return;
    uint64_t *addresses = mem_array(of.len, sizeof(*addresses));
    struct symbol_frames *frames = mem_array(of.len, sizeof(*frames));
    for (size_t i = 0; i < of.len; i++)
        addresses[i] = of.at[i]->code - back;
    symbols_resolve(symbols, m, addresses, of.len, frames);
    for (size_t i = 0; i < of.len; i++)
        name(arg, of.at[i], &frames[i]);
    free(addresses);
    free(frames);
    vec_release(&of);
}
