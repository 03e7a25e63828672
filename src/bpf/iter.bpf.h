/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_ITER_BPF_H
#define BPF_ITER_BPF_H

/*
 * The kernel's types of iterators over tasks, as far as they are used. A part of kernel.h.
 *
 * Runs in: the kernel.
 */

#include "bpf/kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct seq_file;

struct bpf_iter_meta {
    struct seq_file *seq;
};

struct bpf_iter__task {
    struct bpf_iter_meta *meta;
    struct task_struct *task;
};

#pragma clang attribute pop

#endif
