/* SPDX-License-Identifier: BSD-2-Clause */
/* A library that stack_changes.c loads: two of them, with frames of ROOM bytes, have the same addresses otherwise. */
void call(void (*inner)(void));

void call(void (*inner)(void))
{
    char room[ROOM];
    __asm__ volatile("" : : "r"(room) : "memory");
    inner();
    __asm__ volatile("" : : "r"(room) : "memory");
}
