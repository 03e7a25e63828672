/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_PROBE_H
#define BPF_PROBE_H

/* Probes on functions of the traced processes: what the tool tells the programs before they are attached. */

#include "bpf/sys.h"
#include "wire/probe_event_schema.h"

struct probe_operand {
    __s64 value;
    __u16 base, index; /* PROBE_NO_REGISTER: none */
    __u8 place, scale; /* PROBE_CONSTANT, ... */
    __u8 bytes;        /* 1, 2, 4 or 8 */
    __u8 is_signed;
};

/** One place of a static probe; its number is the cookie of the uprobe. */
struct probe_static_site {
    __u32 id; /* of the event */
    __u32 n;
    struct probe_operand operands[PROBE_STATIC_ARGUMENTS];
};

#endif
