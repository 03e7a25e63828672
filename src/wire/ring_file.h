/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_RING_FILE_H
#define WIRE_RING_FILE_H

/*
 * The files of rings that lie beside a ledger, as the target makes them.
 *
 * Runs in: target, cold paths only.
 */

#include "wire/headroom.h"
#include "wire/ledger_file.h"

#define RING_FILE_PATH_BYTES (LEDGER_PATH_BYTES + 1 + LEDGER_NAME_BYTES)

/* The most CPUs that have rings, or cells of sums, of their own; on other CPUs threads share one ring. */
#define RING_FILE_CPUS_MOST 500u

/**
 * Returns the number of CPUs that the machine may ever have, at most RING_FILE_CPUS_MOST: one more than the last number
 * in "0-3" or "0,2-5". A thread on a CPU beyond them writes into the ring that threads share.
 */
static inline uint32_t ring_file_cpus(void)
{
    char text[64];
    uint32_t last = 0;
    const long fd = sys_call(SYS_openat, AT_FDCWD, "/sys/devices/system/cpu/possible", O_RDONLY | O_CLOEXEC);
    const long n = sys_failed(fd) ? 0 : sys_call(SYS_read, fd, text, sizeof(text));
    for (long k = 0; k < n; k++)
        if (text[k] >= '0' && text[k] <= '9')
            last = 10 * last + (uint32_t)(text[k] - '0');
        else if (text[k] != '\n')
            last = 0;
    if (!sys_failed(fd))
        sys_call(SYS_close, fd);
    return last < RING_FILE_CPUS_MOST ? last + 1 : RING_FILE_CPUS_MOST;
}

/*
 * Creates an empty file beside the ledger, and stores its path. It is a memfd, without a path, if the ledger is one, or
 * if the process cannot reach the folder any more. Returns a descriptor or -errno.
 */
static inline long ring_file_create(const struct ledger *l, const struct ledger_config *config,
                                    const char *suffix, char path[static RING_FILE_PATH_BYTES])
{
    const int pid = (int)sys_call(SYS_getpid, 0);
    if (l->dir[0]) {
        ledger_file_name(path + text_join(path, LEDGER_PATH_BYTES + 1, l->dir, "/"), config, 0, pid, suffix);
        const long fd = sys_call(SYS_openat, AT_FDCWD, path, LEDGER_FILE_NEW, 0600);
        if (fd != -ENOENT && fd != -EACCES)
            return fd;
    }
    ledger_file_name(path, config, -ENOENT, pid, suffix);
    const long fd = sys_call(SYS_memfd_create, path, MFD_CLOEXEC);
    path[0] = '\0';
    return fd;
}

/**
 * Makes a file beside the ledger (a memfd if the ledger is one), and maps it. Its memory cannot be touched before
 * ledger_back(). NULL: that failed.
 */
static inline char *ring_file_map(const struct ledger *l, const struct ledger_config *config,
                                  const char *suffix, uint64_t bytes)
{
    char path[RING_FILE_PATH_BYTES], *map = NULL;
    const long fd = ledger_file_may_have(bytes) ? ring_file_create(l, config, suffix, path) : -EFBIG;
    if (sys_failed(fd))
        return NULL;
    if (!sys_call(SYS_ftruncate, fd, bytes))
        map = ledger_file_map(fd, bytes, PROT_NONE);
    if (map) {
        sys_call(SYS_munlock, map, bytes);
        sys_call(SYS_madvise, map, bytes, MADV_DONTFORK);
        sys_call(SYS_madvise, map, bytes, MADV_DONTDUMP);
    } else if (path[0]) {
        sys_call(SYS_unlinkat, AT_FDCWD, path, 0);
    }
    sys_call(SYS_close, fd);
    return map;
}

/**
 * As ring_file_map(). The file has *bytes, or `least_bytes` if RLIMIT_AS or RLIMIT_FSIZE leave too
 * little room. Sets *bytes to the size of the file, and takes it from the budget of address space (headroom.h).
 */
static inline char *ring_file_map_fitting(const struct ledger *l, const struct ledger_config *config,
                                          const char *suffix, uint64_t *bytes, uint64_t least_bytes)
{
    char *map = headroom_has_space(*bytes) ? ring_file_map(l, config, suffix, *bytes) : NULL;
    if (!map && *bytes > least_bytes) {
        *bytes = least_bytes;
        map = ring_file_map(l, config, suffix, *bytes);
    }
    if (map)
        headroom_take_space(*bytes, 0);
    return map;
}

#endif
