/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_DEBUGINFOD_FETCHER_H
#define SYMBOL_DEBUGINFOD_FETCHER_H

/*
 * Processes that ask debuginfod servers, so that whoever started them never waits for a network: libdebuginfod is
 * loaded there, if it is installed, and answers come over a socket. They are nobody's children, have no terminal and
 * none of our files open, and give up about a second after the socket has been closed at our end.
 *
 * Runs in: the tool. Owns: nothing; the descriptor is the caller's.
 */

#include <stddef.h>
#include <stdint.h>

#define FETCHER_BUILD_ID_MAX 64
#define FETCHER_PATH_MAX     4000

struct fetcher_request {
    unsigned char build_id[FETCHER_BUILD_ID_MAX];
    size_t build_id_len;
    uint32_t key; /* comes back with the answer */
};

struct fetcher_answer {
    uint32_t key;
    int32_t error;               /* 0, -ENOENT: no server has it, or why it could not be fetched */
    char path[FETCHER_PATH_MAX]; /* of the file in libdebuginfod's cache */
};

/**
 * Starts asking. A SEQPACKET socket on which each request is answered once, in any order; it ends when nobody asks any
 * more. Or -errno.
 */
int fetcher_start(const struct fetcher_request *requests, size_t n);

/** The library's path name when it can be loaded into this process, else NULL. It stays loaded. */
const char *fetcher_library(void);

#endif
