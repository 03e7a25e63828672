/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/accounts/account_modules.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sigsafe/str.h"
#include "wire/deferred_rules.h"

#define DELETED " (deleted)"

const char *account_modules_text(const struct ledger_copy *c, uint32_t string)
{
    return string < c->count[LEDGER_STRINGS] ? ledger_copy_at(c, LEDGER_STRINGS, char, string) : "";
}

void account_modules_read(struct account_modules *to, const struct ledger_copy *c)
{
    for (uint64_t i = 0; i < c->count[LEDGER_MODULES]; i++) {
        const struct ledger_module *of = ledger_copy_at(c, LEDGER_MODULES, struct ledger_module, i);
        struct account_module m = {.path = mem_strdup(account_modules_text(c, of->path))};
        m.key = ledger_module_key(m.path, strlen(m.path));
        text_cut_end(m.path, DELETED);
        if (of->build_id_len <= LEDGER_BUILD_ID_BYTES)
            m.build_id_len = of->build_id_len;
        memcpy(m.build_id, of->build_id, m.build_id_len);
        if (m.build_id_len)
            m.key = ledger_module_key(m.build_id, m.build_id_len);
        *vec_push(to) = m;
    }
}

void account_modules_release(struct account_modules *m)
{
    vec_each (struct account_module, each, m)
        free(each->path);
    vec_release(m);
}
