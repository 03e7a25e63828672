/* SPDX-License-Identifier: BSD-2-Clause */
/* src/agent/sites_slots: an address keeps what was said of it while the table grows, whoever looks; and nearly all
 * are found at once. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/sites/site_slots.h"

#define ADDRESSES 30000u
#define THREADS   4u
/* at eight slots for each address some 2 % at most find the first two taken; here 1 to 2 */
#define HOT_PERCENT 97u

static uintptr_t addresses[ADDRESSES];

static uint32_t id_of(uintptr_t pc)
{
    return (uint32_t)(pc * 2654435761u >> 8) | 1;
}

static int begin(void **state)
{
    uint64_t seed = 11;
    *state = aligned_alloc(4096, SITES_SLOTS * sizeof(struct sites_slot));
    memset(*state, 0, SITES_SLOTS * sizeof(struct sites_slot));
    sites_slots_begin(*state);
    for (unsigned i = 0; i < ADDRESSES; i++) { /* of 40 MiB of code */
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        addresses[i] = 0x7f0000400000 + (seed >> 33) % (40u << 20);
    }
    return 0;
}

static int end(void **state)
{
    free(*state);
    return 0;
}

static uint32_t settled_id(uintptr_t pc)
{
    struct sites_slot *slot = sites_slots_take(pc);
    uint32_t id = 0;
    if (slot &&
        __atomic_compare_exchange_n(&slot->id, &id, id_of(pc), false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        id = id_of(pc);
    return id;
}

static void what_was_said_of_an_address_stays(void **state)
{
    uint64_t first = sites_slots.mask;
    (void)state;
    for (unsigned i = 0; i < ADDRESSES; i++) {
        struct sites_slot *slot = sites_slots_take(addresses[i]);
        assert_non_null(slot);
        assert_int_equal(slot->pc, addresses[i]);
        if (!slot->id)
            slot->id = id_of(addresses[i]);
        for (unsigned j = i % 97; j <= i; j += 997)
            assert_int_equal(sites_slots_take(addresses[j])->id, id_of(addresses[j]));
    }
    assert_true(sites_slots.mask > 8 * first);
    assert_true(sites_slots.mask <= SITES_SLOTS_MASK(SITES_SLOTS));
}

static void nearly_all_are_found_at_once(void **state)
{
    (void)state;
    for (unsigned n = 16; n <= ADDRESSES; n += n / 2) {
        unsigned hot = 0;
        for (unsigned again = 0; again < 2; again++) /* the table grows during the first */
            for (unsigned i = 0; i < n; i++)
                settled_id(addresses[i]);
        for (unsigned i = 0; i < n; i++) {
            const struct sites_slot *slot = sites_slot_known(addresses[i]);
            assert_true(slot == &sites_slot_none || slot->pc == addresses[i]);
            hot += slot != &sites_slot_none;
        }
        assert_true(hot * 100 >= n * HOT_PERCENT);
    }
    assert_ptr_equal(sites_slot_known(8), &sites_slot_none);
}

static void *take_all(void *wrong)
{
    for (unsigned again = 0; again < 3; again++)
        for (unsigned i = 0; i < ADDRESSES; i++)
            if (settled_id(addresses[i]) != id_of(addresses[i]))
                __atomic_add_fetch((unsigned *)wrong, 1, __ATOMIC_RELAXED);
    return NULL;
}

static void threads_that_take_the_same_agree(void **state)
{
    pthread_t t[THREADS];
    unsigned wrong = 0;
    (void)state;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, take_all, &wrong), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_said_of_an_address_stays, begin, end),
        cmocka_unit_test_setup_teardown(nearly_all_are_found_at_once, begin, end),
        cmocka_unit_test_setup_teardown(threads_that_take_the_same_agree, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
