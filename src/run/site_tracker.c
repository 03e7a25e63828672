/* SPDX-License-Identifier: BSD-2-Clause */
#include "run/site_tracker.h"

#include <stdlib.h>

#include "base/mem.h"
#include "collect/accounts/site_accounts.h"
#include "store/account_tables.h"

struct site_tracker {
    struct symbols *symbols;
    const struct wrappers *wrappers;
    struct accounts_keeper *keeper;
    struct alloc_texts texts;
};

struct site_tracker *site_tracker_new(struct recording *recording, struct symbols *symbols,
                                      const struct wrappers *wrappers)
{
    if (!wrappers)
        return NULL;
    struct site_tracker *s = mem_alloc(sizeof(*s));
    *s = (struct site_tracker){
        .symbols = symbols, .wrappers = wrappers, .keeper = accounts_keeper_new(recording, "sites")};
    return s;
}

void site_tracker_free(struct site_tracker *s)
{
    if (!s)
        return;
    accounts_keeper_free(s->keeper);
    alloc_texts_release(&s->texts);
    free(s);
}

int site_tracker_keep(struct site_tracker *s, int fd, pid_t pid, bool alive, const char *root,
                      struct error *e)
{
    struct accounts a = {.rows = {0}};
    if (!s)
        return 0;
    int bad = sites_read_file(&a, &s->texts, fd, pid, alive, s->symbols, s->wrappers, root, NULL);
    bad = bad ? 0 : accounts_keeper_put(s->keeper, &a, &s->texts, e);
    accounts_release(&a);
    return bad;
}
