/* SPDX-License-Identifier: BSD-2-Clause */
/* Another source with the events of the header, and with an event whose name events.c has, too. It is also a library
 * that is loaded and unloaded. */
#include "events.h"

ALLIUM_EVENT(shop, odd, ALLIUM_STR(why, 16));

static inline void tick(void)
{
    allium_emit(shop, tick, .thread = 1000, .count = 1);
}

void other_events(void)
{
    tick();
    allium_emit(shop, odd, .why = "text");
}
