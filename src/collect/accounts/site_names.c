/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/accounts/site_names.h"

#include <string.h>

#include "base/buf.h"
#include "collect/accounts/site_accounts.h"

/* Returns whether the symbol is a function of the allocator that the agent hooks. */
static bool is_hooked(const char *symbol)
{
    static const char *const names[] = {"malloc",        "calloc",   "realloc", "reallocarray",
                                        "free",          "memalign", "valloc",  "posix_memalign",
                                        "aligned_alloc", "pvalloc",  "cfree",   NULL};
    for (int i = 0; names[i]; i++)
        if (!strcmp(symbol, names[i]))
            return true;
    return !strncmp(symbol, "_Znw", 4) || !strncmp(symbol, "_Zna", 4) || !strncmp(symbol, "_Zdl", 4) ||
           !strncmp(symbol, "_Zda", 4);
}

/* Returns "inlined in parse at parse.c:12, inlined in main at main.c:3" for the functions that frame number `inner` is
 * inlined into. */
static uint32_t outer_functions(struct alloc_texts *texts, const struct symbol_frames *frames, size_t inner)
{
    struct buf b = BUF_INIT;
    for (size_t i = inner; i + 1 < frames->len && frames->at[i].inlined; i++) {
        const struct symbol_frame *outer = &frames->at[i + 1];
        const char *slash = outer->file ? strrchr(outer->file, '/') : NULL;
        buf_printf(&b, "%sinlined in %s", i > inner ? ", " : "", outer->function);
        if (outer->file && outer->line)
            buf_printf(&b, " at %s:%u", slash ? slash + 1 : outer->file, outer->line);
    }
    uint32_t text = alloc_texts_put_string(texts, buf_str(&b));
    buf_release(&b);
    return text;
}

void site_names_put(struct account_row *row, const struct symbol_frames *frames, bool by_wrapper,
                    const struct symbol_calls *calls, const struct wrappers *wrappers,
                    struct alloc_texts *texts)
{
    struct account_key *key = &row->key;
    struct symbol_called called = {.how = SYMBOL_CALL_POINTER};
    size_t i = 0;
    while (i + 1 < frames->len && frames->at[i].inlined &&
           (wrappers_have(wrappers, frames->at[i].function) ||
            (frames->at[i].file && strstr(frames->at[i].file, "allium/malloc_hooks.h"))))
        i++;
    const struct symbol_frame *f = &frames->at[i];
    key->function = alloc_texts_put_string(texts, f->function);
    key->file = alloc_texts_put_string(texts, f->file ? f->file : "");
    key->line = f->line;
    key->name = outer_functions(texts, frames, i);
    if (key->class) /* the place of a tag, not a call */
        return;
    if (calls)
        called = symbol_calls_before(calls, row->code);
    if (wrappers_have(wrappers, f->function))
        key->class = alloc_texts_put_string(texts, SITES_WRAPPER);
    else if (!by_wrapper && (called.how == SYMBOL_CALL_NONE || called.how == SYMBOL_CALL_CODE ||
                             (called.how == SYMBOL_CALL_SYMBOL && !is_hooked(called.symbol))))
        key->class = alloc_texts_put_string(texts, SITES_TAIL_CALL);
}
