/* SPDX-License-Identifier: BSD-2-Clause */
/* XRay: clang's nops at entry and exit of each function, which its runtime library patches to jumps. */
#include "bench/hooks/xray/bench_xray.h"

#include "bench/hooks/bench_mechanism.h"

#define FIRST_FUNCTION 1 /* numbers are given in the order of the functions, from 1 on */

BENCH_BARE(bare)
BENCH_LOOP(loop_xray, bench_xray_work(i))

/* XRay passes the number of the function alone. */
static void handle(int32_t function, int type)
{
    (void)type;
    bench_hook((void *)(intptr_t)function, BENCH_CALLER);
}

static const char *begin(bool on)
{
    if (!bench_xray_work || !__xray_set_handler || !__xray_patch)
        return "this allium was built without XRay: install clang and libclang-rt-dev, and build it anew";
    if (!__xray_set_handler(handle))
        return "XRay does not know this CPU: it takes an invariant time stamp counter";
    return !on || __xray_patch() == 1 ? NULL : BENCH_NO_PATCH;
}

static bool set(uint32_t n, bool on)
{
    if (!__xray_set_handler)
        return false;
    if (n == 1)
        return (on ? __xray_patch_function(FIRST_FUNCTION) : __xray_unpatch_function(FIRST_FUNCTION)) == 1;
    return (on ? __xray_patch() : __xray_unpatch()) == 1;
}
BENCH_MECHANISM(xray) = {"xray", bare, loop_xray, begin, 2, NULL, .set = set};
