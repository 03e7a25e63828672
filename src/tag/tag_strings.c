/* SPDX-License-Identifier: BSD-2-Clause */
#include "tag/tag_strings.h"

#include "base/sigsafe/str.h"
#include "tag/tag_ledger.h"
#include "target/intern_table.h"
#include "target/ledger_stacks.h"

static struct intern strings = {.ledger = &process.ledger};

/* Compares the text `key` with a stored string, which may have been cut to LEDGER_STACKS_STRING_MAX bytes. */
static bool same_string(const void *key, uint32_t number)
{
    const char *stored = ledger_at(&process.ledger, LEDGER_STRINGS, char, number), *text = key;
    size_t length = text_length(stored);
    return text_starts(text, stored) && (!text[length] || length == LEDGER_STACKS_STRING_MAX);
}

uint32_t tag_strings_number(const char *text)
{
    if (!*text)
        return 0;
    uint32_t hash = (uint32_t)ledger_action_key(text, text_length(text), 0);
    uint32_t number = intern_find(&strings, hash, same_string, text);
    if (number != INTERN_NONE)
        return number;
    number = ledger_stacks_add_string(&process.ledger, text);
    if (number)
        intern_add(&strings, hash, number);
    return number;
}

void tag_strings_reset(void)
{
    intern_reset(&strings);
}
