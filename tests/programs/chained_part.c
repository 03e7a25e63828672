/* SPDX-License-Identifier: BSD-2-Clause */
/* One function of the chain; built with and without frame pointers. PART: its name, WHO: its number. */
#include "chained.h"

void PART(void)
{
    /* What lives on needs a register: one function spoils its caller's rbp, the other leaves it where it is. */
    uint64_t one = WHO == LIBRARY_WITHOUT_RBP ? chained_any : 0,
             other = WHO == LIBRARY_WITHOUT_RBP ? chained_any : 0;
    chained_note((uint64_t)__builtin_return_address(0), WHO);
    chained_next();
    __asm__ volatile(""
                     :
                     : "rm"(WHO == LIBRARY_WITHOUT_RBP ? one : 0),
                       "rm"(WHO == LIBRARY_WITHOUT_RBP ? other : 0));
}
