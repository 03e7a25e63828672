/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent without accounts of call sites: liballium-agent.so. This file takes the place of the folder
 * sites/.
 */
#include "agent/sites_link.h"

const bool sites_linked = false;
uint32_t sites_on;

__thread struct thread thread_self __attribute__((tls_model("initial-exec")));

void sites_find_next(void)
{
}

void sites_begin(void)
{
}

void sites_begin_ledger(void)
{
}

void sites_begin_thread(struct thread *t)
{
    (void)t;
}

void sites_before_fork(void)
{
}

void sites_become_child(void)
{
}

void sites_seal(bool first)
{
    (void)first;
}

void sites_unseal(void)
{
}

void sites_made_cold(const struct walk_start *from, void *p, size_t size)
{
    (void)from;
    (void)p;
    (void)size;
}

void sites_gone_cold(const struct walk_start *from, void *p)
{
    (void)from;
    (void)p;
}

void sites_expect_more(const void *p, size_t size)
{
    (void)p;
    (void)size;
}

struct sites_taken sites_take(void *p)
{
    (void)p;
    return (struct sites_taken){0};
}

void sites_moved(const struct walk_start *from, void *old, struct sites_taken taken, void *p, size_t size,
                 bool failed)
{
    (void)from;
    (void)old;
    (void)taken;
    (void)p;
    (void)size;
    (void)failed;
}

void sites_charge_tag(const void *p, uint32_t account)
{
    (void)p;
    (void)account;
}

#define X(field, symbol)                                                                                     \
    next_new_fn sites_instead_##field(next_new_fn real)                                                      \
    {                                                                                                        \
        return real;                                                                                         \
    }
NEXT_NEW_FORMS(X)
#undef X
#define X(field, symbol)                                                                                     \
    next_delete_fn sites_instead_##field(next_delete_fn real)                                                \
    {                                                                                                        \
        return real;                                                                                         \
    }
NEXT_DELETE_FORMS(X)
#undef X
