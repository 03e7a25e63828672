/* SPDX-License-Identifier: BSD-2-Clause */
/* What kmem_accounts.h tells of the accounts. */
#include "model/kernel/kmem_accounts_parts.h"

static void age(struct kmem_account *r, uint64_t age_ns)
{
    r->oldest_ns = age_ns > r->oldest_ns ? age_ns : r->oldest_ns;
}

static void age_of_object(void *arg, const struct kmem_object *o)
{
    struct kmem_accounts *a = arg;
    const uint64_t lasted_ns = a->totals.last_ns - a->totals.first_ns;
    const uint64_t born_ns = o->born_us * 1000, age_ns = lasted_ns > born_ns ? lasted_ns - born_ns : 0;
    age(&a->rows.at[o->row], age_ns);
    if (o->process_row != NO_ROW)
        age(&a->processes.at[o->process_row], age_ns);
}

void kmem_accounts_update_ages(struct kmem_accounts *a)
{
    vec_each (struct kmem_account, r, &a->rows)
        r->oldest_ns = r->held_ns;
    vec_each (struct kmem_account, p, &a->processes)
        p->oldest_ns = 0;
    kmem_objects_each(&a->live, age_of_object, a);
}

void kmem_accounts_restart_peak(struct kmem_accounts *a)
{
    a->totals.peak_bytes = a->totals.live_bytes;
    a->totals.peak_ns = a->totals.last_ns;
    a->at_peak = true;
    forget_large(a);
}

void kmem_accounts_update_peak(struct kmem_accounts *a)
{
    leave_peak(a);
    forget_large(a);
    vec_each (struct kmem_account, r, &a->rows)
        store_peak(a, r);
    vec_each (struct kmem_account, p, &a->processes)
        store_peak(a, p);
}

const struct kmem_totals *kmem_accounts_totals(const struct kmem_accounts *a)
{
    return &a->totals;
}

const struct kmem_account *kmem_accounts_rows(const struct kmem_accounts *a, size_t *n)
{
    *n = a->rows.len;
    return a->rows.at;
}

const struct kmem_account *kmem_accounts_processes(const struct kmem_accounts *a, size_t *n)
{
    *n = a->processes.len;
    return a->processes.at;
}

const struct kmem_pair *kmem_accounts_pairs(const struct kmem_accounts *a, size_t *n)
{
    *n = a->pairs.len;
    return a->pairs.at;
}

const char *kmem_accounts_text(const struct kmem_accounts *a, uint32_t text)
{
    return event_texts_text(&a->texts, text);
}

size_t kmem_accounts_texts(const struct kmem_accounts *a)
{
    return a->texts.texts.len;
}

const uint64_t *kmem_accounts_stack(const struct kmem_accounts *a, uint32_t stack, uint32_t *depth)
{
    return event_texts_callers(&a->texts, stack, depth);
}
