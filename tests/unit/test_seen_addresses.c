/* SPDX-License-Identifier: BSD-2-Clause */
/* src/model/kernel/seen_addresses: random addresses, close together and far apart, against a list of them. */
#include "test_kernel.h"

#include "model/kernel/seen_addresses.h"

#define NEAR  4096u /* neighbours: each fourth byte of 16 KiB */
#define FAR   5000u /* more than there is room for at first */
#define TRIES 30000u

static uint64_t state_of_draw = 1;

static uint32_t draw(uint32_t below)
{
    state_of_draw = state_of_draw * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state_of_draw >> 33) % below);
}

static void each_address_once(void **state)
{
    static bool near[NEAR], far[FAR];
    struct seen_addresses s;
    (void)state;
    seen_addresses_init(&s);
    for (uint32_t i = 0; i < TRIES; i++) {
        const uint32_t n = draw(NEAR), f = draw(FAR);
        assert_int_equal(seen_addresses_add(&s, UINT64_C(0xffff888000000000) + 4 * n), near[n]);
        assert_int_equal(seen_addresses_add(&s, UINT64_C(0x1234567) * 4096 * (f + 1)), far[f]);
        near[n] = far[f] = true;
    }
    assert_false(seen_addresses_add(&s, UINT64_MAX - 3));
    assert_true(seen_addresses_add(&s, UINT64_MAX - 3));
    seen_addresses_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST("each address is new once", each_address_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
