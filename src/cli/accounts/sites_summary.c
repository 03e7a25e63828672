/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/accounts/sites_summary.h"

#include <errno.h>

#include "cli/accounts/accounts_source.h"
#include "cli/command.h"
#include "cli/option_values.h"
#include "cli/terminal.h"
#include "store/account_tables.h"

void sites_summary_write(const char *path)
{
    struct accounts_view o = {.style = terminal_style(stderr),
                              .shape = {.schema = "sites",
                                        .kind = ACCOUNT_OF_SITES,
                                        .sort = ACCOUNT_SORT_TOTAL,
                                        .top = OPTION_VALUES_TOP_DEFAULT}};
    struct accounts_reading r = {.label = NULL};
    struct alloc_texts texts = {.bytes = BUF_INIT};
    struct error e = {""};
    int bad = recording_load_accounts(&r.accounts, &texts, path, "sites", NULL, &e);
    if (bad) {
        command_fail(0, "%s",
                     bad == -ENODATA
                         ? "no process has kept accounts of call sites: see LOSSES in allium-sites(1)"
                         : e.text);
    } else {
        struct sink out = sink_to_file(stderr);
        struct buf notes = BUF_INIT;
        accounts_view_write(&out, &o, &texts, NULL, &r, &notes);
        sink_finish(&out);
        accounts_view_note_losses(&notes, &r.accounts, sites_losses);
        command_notes(&notes);
    }
    accounts_reading_release(&r);
    alloc_texts_release(&texts);
}
