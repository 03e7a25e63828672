/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/process_record.h"

#include <stdlib.h>

#include "allium_version.h"
#include "base/buf.h"
#include "cli/source.h"
#include "cli/wrapper_lists.h"
#include "collect/accounts/site_accounts.h"
#include "collect/accounts/tag_accounts.h"
#include "collect/ledger/profile_names.h"
#include "store/account_tables.h"
#include "store/recording.h"

const char *const process_record_kinds[PROCESS_RECORD_KINDS] = {
    [PROCESS_RECORD_TAGS] = "tags", [PROCESS_RECORD_SITES] = "sites"};

static int put_profile(struct recording *r, const struct profile *p, struct error *e)
{
    const struct profile_image *i = &p->images.at[0];
    int bad = recording_set_text(r, RECORDING_COMMAND, profile_text(p, i->args), e);
    if (!bad)
        bad = recording_set_number(r, RECORDING_STARTED, (int64_t)i->began_ns, e);
    if (!bad)
        bad = recording_put_image(r, p, true, e);
    if (!bad)
        bad = recording_set_number(r, RECORDING_ENDED, (int64_t)i->taken_ns, e);
    return bad;
}

static int put_accounts(struct recording *r, const struct process_record *f, int kind, struct error *e)
{
    const struct account_process *p = f->accounts[kind].processes.at;
    if (!p)
        return 0;
    struct accounts_keeper *k = accounts_keeper_new(r, process_record_kinds[kind]);
    int bad = accounts_keeper_put(k, &f->accounts[kind], &f->texts, e);
    accounts_keeper_free(k);
    if (!bad && !f->profile)
        bad = recording_set_text(r, RECORDING_COMMAND, p->comm, e);
    if (!bad && !f->profile)
        bad = recording_set_number(r, RECORDING_STARTED, (int64_t)p->began_ns, e);
    return bad ? bad : recording_set_number(r, RECORDING_ENDED, (int64_t)p->taken_ns, e);
}

int process_record_store(const struct process_record *f, const char *path, bool force, struct error *e)
{
    struct recording *r;
    int bad = recording_create(&r, path, force, e);
    if (bad)
        return bad;
    bad = recording_set_text(r, RECORDING_VERSION, ALLIUM_VERSION, e);
    if (!bad && f->profile)
        bad = put_profile(r, f->profile, e);
    for (int kind = 0; kind < PROCESS_RECORD_KINDS && !bad; kind++)
        bad = put_accounts(r, f, kind, e);
    int closed = recording_close(r, bad ? NULL : e);
    return bad ? bad : closed;
}

int process_record_read(struct process_record *f, pid_t pid, struct error *e)
{
    *f = (struct process_record){.texts = {.bytes = BUF_INIT}};
    char *cache = profile_names_cache_dir();
    struct symbols *symbols = symbols_new(cache);
    struct wrappers wrappers = {0};
    bool any = !tags_read(&f->accounts[PROCESS_RECORD_TAGS], &f->texts, pid, NULL, symbols, NULL);
    int bad = source_read_ledger(&f->profile, pid, e);
    if (!bad) { /* sites are in the same ledger */
        wrapper_lists_read(&wrappers);
        any |=
            !sites_read(&f->accounts[PROCESS_RECORD_SITES], &f->texts, pid, NULL, symbols, &wrappers, NULL);
        wrappers_release(&wrappers);
    }
    symbols_free(symbols);
    free(cache);
    if (bad)
        f->profile = NULL;
    return any ? 0 : bad;
}

void process_record_release(struct process_record *f)
{
    profile_free(f->profile);
    for (int kind = 0; kind < PROCESS_RECORD_KINDS; kind++)
        accounts_release(&f->accounts[kind]);
    alloc_texts_release(&f->texts);
}
