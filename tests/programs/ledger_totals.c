/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints what the ledgers in a directory add up to, a JSON object a line: for tests that compare with a known truth.
 *
 *     ledger_totals [--stacks] DIR
 *
 * With --stacks: a line for each stack of each ledger instead, with its sums and its frames, leaf first, each as
 * [path of the module, address in that file]. Addresses are return addresses.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collect/ledger/ledger_copy.h"
#include "collect/ledger/ledger_dir.h"
#include "collect/ledger/ledger_profile.h"

static void add(struct profile_sums *to, const struct profile_sums *from)
{
    to->samples += from->samples;
    to->seen_bytes += from->seen_bytes;
    to->bytes += from->bytes;
    to->count += from->count;
}

static void print_sums(const char *name, const struct profile_sums *s)
{
    printf(",\"%s_samples\":%" PRIu64 ",\"%s_count\":%.3f,\"%s_bytes\":%.3f", name, s->samples, name,
           s->count, name, s->bytes);
}

static void print_losses(const struct profile_image *i)
{
    static const char *const names[] = {"lost_samples",  "lost_live",      "frees_unseen", "stacks_cut",
                                        "stacks_broken", "lost_threads",   "lost_growth",  "lost_children",
                                        "failed",        "inherited_frees"};
    for (int k = 0; k < PROFILE_LOSSES; k++)
        printf(",\"%s\":%" PRIu64, names[k], i->losses[k]);
}

static void print_frames(const struct profile *p, const struct profile_stack *s)
{
    for (uint32_t i = 0; i < s->depth; i++) {
        const struct profile_location *l = &p->locations.at[p->stack_locations.at[s->first + i]];
        const char *path = l->module == PROFILE_NONE ? "" : profile_text(p, p->modules.at[l->module].path);
        printf("%s[\"%s\",%" PRIu64 "]", i ? "," : "", path, l->address);
    }
}

static void print_stacks(const struct ledger_entry *e, const struct profile *p)
{
    for (uint32_t i = 0; i < p->stacks.len; i++) {
        const struct profile_stack *s = &p->stacks.at[i];
        struct profile_sums allocated = {0}, freed = {0};
        vec_each (const struct profile_cell, c, &p->cells)
            if (c->stack == i) {
                add(&allocated, &c->allocated);
                add(&freed, &c->freed);
            }
        printf("{\"pid\":%d,\"end\":%d,\"allocated\":%" PRIu64 ",\"freed\":%" PRIu64 ",\"frames\":[",
               (int)e->pid, (int)s->end, allocated.samples, freed.samples);
        print_frames(p, s);
        printf("]}\n");
    }
}

static void print_totals(const struct ledger_entry *e, const struct profile *p)
{
    struct profile_sums allocated = {0}, freed = {0}, at_peak = {0}, live = {0};
    vec_each (const struct profile_cell, c, &p->cells) {
        add(&allocated, &c->allocated);
        add(&freed, &c->freed);
        add(&at_peak, &c->at_peak);
    }
    vec_each (const struct profile_sample, s, &p->samples)
        add(&live, &(struct profile_sums){.samples = 1, .seen_bytes = (double)s->size_bytes});
    const struct profile_image *i = &p->images.at[0];
    printf("{\"pid\":%d,\"comm\":\"%s\",\"alive\":%s,\"parent_id\":\"%016" PRIx64 "\",\"id\":\"%016" PRIx64
           "\"",
           (int)e->pid, profile_text(p, i->comm), e->alive ? "true" : "false", i->parent_id, i->id);
    print_sums("allocated", &allocated);
    print_sums("freed", &freed);
    print_sums("at_peak", &at_peak);
    printf(",\"live_samples\":%" PRIu64 ",\"live_seen_bytes\":%.0f,\"peak_bytes\":%.3f", live.samples,
           live.seen_bytes, i->peak_bytes);
    printf(
        ",\"begun\":%" PRIu64 ",\"done\":%" PRIu64 ",\"ledger_bytes\":%" PRIu64 ",\"torn\":%" PRIu64
        ",\"inconsistent\":%s,\"stacks\":%zu,\"threads\":%zu,\"modules\":%zu,\"frees\":%zu,\"full\":\"%s\"",
        i->operations_begun, i->operations_done, i->ledger_bytes, i->torn_samples,
        i->inconsistent ? "true" : "false", p->stacks.len, p->threads.len, p->modules.len, p->frees.len,
        profile_text(p, i->ledger_full));
    print_losses(i);
    printf("}\n");
}

static void print_entry(const struct ledger_entry *e, bool stacks)
{
    struct ledger_copy copy;
    struct error error = {""};
    int fd = open(e->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (ledger_copy_read(fd, &copy, &error)) {
        printf("{\"pid\":%d,\"error\":\"%s\"}\n", (int)e->pid, error.text);
        close(fd);
        return;
    }
    close(fd);
    struct profile *p = ledger_profile(&copy);
    if (stacks)
        print_stacks(e, p);
    else
        print_totals(e, p);
    profile_free(p);
    ledger_copy_release(&copy);
}

int main(int argc, char **argv)
{
    struct ledger_list list = {0};
    bool stacks = argc == 3 && !strcmp(argv[1], "--stacks");
    if (argc != 2 + stacks || ledger_dir_scan(argv[1 + stacks], &list))
        return 2;
    vec_each (const struct ledger_entry, e, &list)
        print_entry(e, stacks);
    ledger_list_release(&list);
    return 0;
}
