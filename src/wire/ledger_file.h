/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_LEDGER_FILE_H
#define WIRE_LEDGER_FILE_H

/*
 * The files of an image: its ledger, and what lies beside it. They have one name but for the suffix.
 *
 * Runs in: target, cold paths only.
 */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/sigsafe/str.h"
#include "base/sigsafe/syscall.h"
#include "wire/ledger_make.h"

#ifndef MFD_CLOEXEC /* a matter of _GNU_SOURCE */
#define MFD_CLOEXEC 1u
#endif

#define LEDGER_NAME_BYTES 128

/* Writes the file name: PID-IMAGE and `suffix`. If there is no directory, this is the name of a memfd; if there is a
 * recorder, it then begins with the recorder's name ("run-…/"), so that the recorder finds it in /proc/PID/maps. */
static inline void ledger_file_name(char out[static LEDGER_NAME_BYTES], const struct ledger_config *config,
                                    long dir, int pid, const char *suffix)
{
    const char *recorder = ledger_recorder_name(config->dir);
    size_t n = sys_failed(dir) && *recorder ? text_join(out, LEDGER_NAME_BYTES / 2, recorder + 1, "/") : 0;
    n += text_from_number(out + n, (uint64_t)pid, 10, 1);
    out[n++] = '-';
    n += text_from_number(out + n, config->image_id, 16, 16);
    text_copy(out + n, LEDGER_NAME_BYTES - n, suffix);
}

#define LEDGER_FILE_NEW (O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC)

/* Returns whether RLIMIT_FSIZE allows a file of `bytes`; beyond the limit the kernel would raise SIGXFSZ. */
static inline bool ledger_file_may_have(uint64_t bytes)
{
    struct rlimit fsize;
    return sys_call(SYS_getrlimit, RLIMIT_FSIZE, &fsize) || fsize.rlim_cur >= bytes;
}

/* Creates a file of `bytes` in the directory, or a memfd if `dir` is an error. Returns a descriptor or -errno. */
static inline long ledger_file_create(long dir, const char *name, uint64_t bytes)
{
    if (!ledger_file_may_have(bytes))
        return -EFBIG;
    long fd = sys_failed(dir) ? sys_call(SYS_memfd_create, name, MFD_CLOEXEC)
                              : sys_call(SYS_openat, dir, name, LEDGER_FILE_NEW, 0600);
    if (sys_failed(fd))
        return fd;
    long bad = sys_call(SYS_ftruncate, fd, bytes);
    if (bad) {
        sys_call(SYS_close, fd);
        if (!sys_failed(dir))
            sys_call(SYS_unlinkat, dir, name, 0);
        return bad;
    }
    return fd;
}

static inline char *ledger_file_map(long fd, uint64_t bytes, int prot)
{
    long p = sys_call(SYS_mmap, 0, bytes, prot, MAP_SHARED | MAP_NORESERVE, fd, 0);
    return sys_failed(p) ? NULL : (char *)p;
}

#endif
