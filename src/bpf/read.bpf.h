/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_READ_BPF_H
#define BPF_READ_BPF_H

/*
 * KERNEL_READ(TYPE, POINTER, A, B...): POINTER->A->B of a struct TYPE of the kernel, 0 if it cannot be read.
 * BPF_CORE_READ() does the same with a call of the kernel for each arrow. Since Linux 6.2 bpf_rdonly_cast() gives a
 * pointer a type, and then each arrow is one instruction: a tenth of the time.
 *
 * Runs in: the kernel. The tool's file has `config`: config.casts is set if the kernel has bpf_rdonly_cast().
 */

#include "bpf/kernel.h"

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>

extern void *bpf_rdonly_cast(const void *pointer, __u32 type) __ksym __weak;

#define CAST_TO(type, pointer)                                                                               \
    ((const struct type *)bpf_rdonly_cast(pointer, bpf_core_type_id_kernel(struct type)))

#define MEMBERS_1(of, a)                  (of)->a
#define MEMBERS_2(of, a, b)               (of)->a->b
#define MEMBERS_3(of, a, b, c)            (of)->a->b->c
#define MEMBERS_4(of, a, b, c, d)         (of)->a->b->c->d
#define MEMBERS_N(_1, _2, _3, _4, n, ...) MEMBERS_##n
#define MEMBERS(of, ...)                  MEMBERS_N(__VA_ARGS__, 4, 3, 2, 1, 0)(of, __VA_ARGS__)
#define KERNEL_READ(type, pointer, ...)                                                                      \
    (config.casts ? MEMBERS(CAST_TO(type, pointer), __VA_ARGS__)                                             \
                  : BPF_CORE_READ((const struct type *)(pointer), __VA_ARGS__))

#endif
