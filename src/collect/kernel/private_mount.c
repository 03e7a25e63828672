/* SPDX-License-Identifier: BSD-2-Clause */
#include "collect/kernel/private_mount.h"

#include <errno.h>
#include <linux/mount.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc has these calls since 2.36. */
int private_mount(const char *type)
{
    int context = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC), fd = -1;
    if (context < 0)
        return -errno;
    if (!syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
        fd = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
    int bad = fd < 0 ? -errno : 0;
    close(context);
    return fd < 0 ? bad : fd;
}
