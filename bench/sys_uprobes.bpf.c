// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Programs at uprobes that do nothing. */
#include "bpf/kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("uprobe") int both_ends(void *ctx)
{
    return 0;
}

SEC("uprobe") int entry_of_two(void *ctx)
{
    return 1; /* the kernel does not call it at the return */
}

SEC("uprobe") int entry(void *ctx)
{
    return 0;
}
