/* SPDX-License-Identifier: BSD-2-Clause */
/* A library that running.c loads while its events are switched: two kinds that the program has, too, and a new one. */
#include <allium/event.h>

ALLIUM_EVENT(shop, late, ALLIUM_U64(count));
ALLIUM_EVENT(shop, noisy, ALLIUM_U64(count));

void work_late(unsigned long count);
void work_late(unsigned long count)
{
    allium_emit(shop, late, .count = count);
    allium_emit(shop, noisy, .count = count);
}
