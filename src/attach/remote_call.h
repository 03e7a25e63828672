/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ATTACH_REMOTE_CALL_H
#define ATTACH_REMOTE_CALL_H

/*
 * Lets a stopped thread of another process call a function. The call returns into the C library's code behind signal
 * handlers, with a frame on the stack that has all registers and the signal mask as they were: if the tool is killed
 * meanwhile, the thread restores itself and goes on. Else the tool stops it there and restores it exactly.
 *
 * Runs in: the tool.
 */

#include "attach/stop.h"
#include "attach/target_process.h"

struct call {
    uint64_t function;
    uint64_t arguments[2];
    const char *text; /* copied to the thread's stack, as the first argument; NULL: none */
    unsigned timeout_ms;
};

/**
 * Calls it. Returns 0: the function has returned; its result is not known. -EAGAIN: it waits for a lock of the loader
 * that another thread holds, and the thread was put back to where it was. Other errors with a line; -ETIMEDOUT: it took
 * too long, and may hold locks: the thread goes on, and ends the call by itself.
 */
int call_function(const struct target *t, struct stopped_thread *thread, const struct call *c,
                  struct error *e);

#endif
