/* SPDX-License-Identifier: BSD-2-Clause */
#include "sys/tested_kernels.h"

#include <stdio.h>

bool kernels_tested(const char *release)
{
    static const struct {
        unsigned major, minor;
    } tested[] = {{6, 1}, {6, 12}, {6, 18}};
    unsigned major, minor;
    if (sscanf(release, "%u.%u", &major, &minor) != 2)
        return false;
    for (unsigned i = 0; i < sizeof(tested) / sizeof(*tested); i++)
        if (tested[i].major == major && tested[i].minor == minor)
            return true;
    return false;
}
