/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cli/accounts/accounts_command.h"
#include "cli/accounts/accounts_source.h"
#include "cli/accounts/call_details_show.h"
#include "cli/accounts/sites_summary.h"
#include "cli/wrapper_lists.h"
#include "collect/accounts/site_accounts.h"

static const struct option_doc options[] = {
    ACCOUNTS_OPTIONS("sort by total (default), slack, live, objects, allocations, frees, failed, freed"),
    {"html", 0, "FILE", "also write the rows as a page for any browser to FILE"},
    {"force", 0, NULL, "replace the FILE of --html if it exists"},
    {"faults", 0, "DURATION", "count page faults in the objects for DURATION"},
    {"freed", 0, NULL, "show the sites that free, instead of the sites that allocate"},
    {"stacks", 0, NULL, "print the stacks of calls for which `allium set` requested them"},
    {"folded", 0, NULL, "print these stacks as folded lines, for flame graphs"},
    {NULL, 0, NULL, NULL}};

static const char *const examples[] = {
    "allium sites 4711",
    "show the account of each call site of process 4711",
    "allium sites 4711 --by module --sort allocations",
    "show which library allocates most often",
    "allium sites server.allium --freed",
    "show the sites that free, in a recording of allium run --sites",
    "allium sites 4711 --stacks --where func:parse_line",
    "show the stacks of its calls, after `allium set 4711 --where func:parse_line stacks`",
    "allium sites server.4711.trace@10s..12s",
    "show what each call site allocated in two seconds of a trace",
    NULL,
};

static int run(int argc, char **argv);

const struct command command_sites = {
    .name = "sites",
    .usage = "[SOURCE|-p PID] [NEWER] [--freed] [--by GROUP] [--sort ORDER] [--where QUERY] "
             "[--fail-if CONDITION]... [--top N] "
             "[--interval INTERVAL] [--count N] [--duration DURATION] [--faults DURATION] " SCREEN_USAGE
             " [--json|--allocinfo|--openmetrics] [--html FILE] [--force] "
             "[--no-pager] [--stacks|--folded]",
    .summary = "show exact accounts of the calls that reach the allocator, of a program started with --sites",
    .examples = examples,
    .options = options,
    .run = run,
};

const char *const sites_losses[ACCOUNT_LOSSES] = {
    [ACCOUNT_LOST_PLACES] =
        "site{s} {has|have} no record of {its|their} own: the ledger has no room for more",
    [ACCOUNT_LOST_OBJECTS] = "object{s} {is|are} charged to no site: there was no memory to follow {it|them}",
    [ACCOUNT_LOST_FREES] =
        "object{s} bypassed the agent when freed, and counted as live until the address came back",
    [ACCOUNT_LOST_RECORDS] = "record{s} of the ledger {is|are} damaged",
    [ACCOUNT_FOREIGN_FREES] =
        "free{s} {was|were} of objects allocated before the accounts began, or past the agent",
    [ACCOUNT_LOST_VERSIONS] = "tag{s} {is|are} compiled with another version of <allium/tag.h>",
};

static struct wrappers wrappers;

static int read_process(struct accounts *a, struct alloc_texts *texts, pid_t pid,
                        const struct object_faults *faults, struct symbols *symbols, struct error *e)
{
    return sites_read(a, texts, pid, faults, symbols, &wrappers, e);
}

#define LIKELY_MOST  5
#define LIKELY_SHARE 1000 /* of the calls, or bytes, of all: who makes less is not worth a word */

enum suggestion { UNMARKED, MARKED };

/*
 * UNMARKED: by its name it only passes on what others ask for, and no list has it. MARKED: a list has it by
 * now, but the process had begun without, or its callers could not be found.
 */
static bool is_wrapper(const struct account_row *r, const char *function, const char *class,
                       enum suggestion which)
{
    if (!function)
        return false;
    if (which == MARKED)
        return class && !strcmp(class, SITES_WRAPPER);
    return !class && !r->key.name && (strcasestr(function, "alloc") || strcasestr(function, "strdup")) &&
           !strstr(function, "+0x");
}

static bool matters(const struct account_row *r, const struct account_sum *all)
{
    const uint64_t *own = r->of[ACCOUNT_AFTER].of;
    return own[ACCOUNT_ALLOCATED_CALLS] &&
           (own[ACCOUNT_ALLOCATED_CALLS] >= all->of[ACCOUNT_ALLOCATED_CALLS] / LIKELY_SHARE ||
            own[ACCOUNT_ALLOCATED_BYTES] >= all->of[ACCOUNT_ALLOCATED_BYTES] / LIKELY_SHARE);
}

/* "xmalloc, xcalloc"; the caller frees it. NULL: none. */
static char *wrappers_among(const struct accounts *a, const struct alloc_texts *texts, enum suggestion which)
{
    struct VEC(const char *) found = {0};
    struct buf b = BUF_INIT;
    const struct account_sum all = account_rows_total(&a->rows, ACCOUNT_AFTER);
    vec_each (const struct account_row, r, &a->rows) {
        const char *function = alloc_texts_get(texts, r->key.function);
        bool is_new =
            matters(r, &all) && is_wrapper(r, function, alloc_texts_get(texts, r->key.class), which);
        vec_each (const char *const, known, &found)
            is_new = is_new && strcmp(*known, function) != 0;
        if (is_new && found.len < LIKELY_MOST)
            *vec_push(&found) = function;
    }
    vec_each (const char *const, name, &found)
        buf_printf(&b, "%s%s", b.len ? ", " : "", *name);
    vec_release(&found);
    return b.len ? buf_detach(&b) : NULL;
}

/* Suggested, and not applied: a list of one's own, or an option, says so. */
static void suggest_wrappers(const struct accounts *a, const struct alloc_texts *texts)
{
    if (a->of_trace)
        return;
    char *likely = wrappers_among(a, texts, UNMARKED), *late = wrappers_among(a, texts, MARKED);
    if (likely)
        command_fail(0,
                     "likely wrappers, by their names: %s; to charge their callers from the next start on, "
                     "use --wrapper of allium run --sites, or a line for each in ~/.config/allium/wrappers",
                     likely);
    if (late)
        command_fail(
            0,
            "wrappers that have sites of their own: %s; they were named after the process had begun, or "
            "their callers could not be found: see WRAPPERS in allium-sites(1)",
            late);
    free(likely);
    free(late);
}

static int run(int argc, char **argv)
{
    static const struct accounts_kind kind = {.command = &command_sites,
                                              .schema = "sites",
                                              .has_page = true,
                                              .sites = true,
                                              .advise = suggest_wrappers,
                                              .read_source = accounts_source_read,
                                              .read = read_process,
                                              .find_objects = sites_find_objects,
                                              .losses = sites_losses,
                                              .none = "nothing was allocated yet"};
    wrapper_lists_read(&wrappers);
    int code = call_details_command(&command_sites, &wrappers, argc, argv);
    if (code < 0)
        code = accounts_command(&kind, argc, argv);
    wrappers_release(&wrappers);
    return code;
}
