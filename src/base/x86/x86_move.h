/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_X86_MOVE_H
#define BASE_X86_MOVE_H

/*
 * Moves the first instructions of a function to another address, so that a jump can take their place.
 *
 * Runs in: the tool. Threads: any. Pure.
 */

#include <stddef.h>
#include <stdint.h>

#define X86_JUMP_BYTES 5u

/** The code of one function, from its first byte on. */
struct x86_function {
    const uint8_t *bytes;
    size_t length;
    uint64_t at; /* its address */
};

struct x86_moved {
    uint32_t skipped; /* bytes that stay in front: endbr64 */
    uint32_t taken;   /* bytes of whole instructions behind them: at least X86_JUMP_BYTES */
    uint32_t length;  /* of the code that does the same elsewhere, with a jump to the rest behind it */
};

/**
 * Writes to out[0..room) what the first instructions become at the address `to`. Returns 0; -ERANGE: `to` is too far
 * away; -EINVAL: the function is too short, jumps back into what would be displaced, or begins with an instruction that
 * cannot be moved.
 */
int x86_move(const struct x86_function *f, uint64_t to, uint8_t *out, size_t room, struct x86_moved *moved);
/** Writes a jump from `at` to `to` into out[0..X86_JUMP_BYTES). Returns 0 or -ERANGE. */
int x86_jump(uint64_t at, uint64_t to, uint8_t *out);

#endif
