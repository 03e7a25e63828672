/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_DEBUGINFOD_FETCHER_H
#define SYMBOL_DEBUGINFOD_FETCHER_H

/*
 * Processes that ask debuginfod servers, so that their starter never waits for the network. They load
 * libdebuginfod, if it is installed, and send answers over a socket. They are detached: not children of the
 * starter, without a terminal and without its open files. They end when the starter has closed its end of
 * the socket.
 *
 * Runs in: the tool. Owns: nothing; the descriptor belongs to the caller.
 */

#include <stddef.h>
#include <stdint.h>

#define FETCHER_BUILD_ID_MAX 64
#define FETCHER_PATH_MAX     4000

struct fetcher_request {
    unsigned char build_id[FETCHER_BUILD_ID_MAX];
    size_t build_id_len;
    uint32_t key; /* copied into the answer */
};

struct fetcher_answer {
    uint32_t key;
    int32_t error;               /* 0; -ENOENT: no server has it; or the error of fetching it */
    char path[FETCHER_PATH_MAX]; /* of the file in libdebuginfod's cache */
};

/**
 * Starts the processes. Returns a SEQPACKET socket on which each request is answered once, in any order; the
 * socket is closed when no more answers can come. Or returns -errno.
 */
int fetcher_start(const struct fetcher_request *requests, size_t n);

/** Returns the path of libdebuginfod if it can be loaded into this process, else NULL. It stays loaded. */
const char *fetcher_library(void);

#endif
