/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MODEL_BOOT_PARAMETERS_H
#define MODEL_BOOT_PARAMETERS_H

/*
 * What the kernel's command line says of a trace that begins with the boot ("trace_event=..."), and what it should say.
 *
 * Runs in: the tool. Threads: pure. Owns: nothing.
 */

#include <stdbool.h>
#include <stdint.h>

/** Returns whether "trace_event=" asks for the event: by "SYSTEM:EVENT", "SYSTEM" or "EVENT", with wildcards. */
bool boot_parameters_trace(const char *command_line, const char *system, const char *event);

/** What a size of the buffers is reckoned from. */
struct boot_machine {
    uint64_t memory_bytes; /* MemTotal */
    uint32_t cpus;         /* each has a buffer */
    uint64_t objects;      /* of the slab allocator now; 0: not known */
};

/** The share of the memory that all buffers together may take: one part of so many. */
#define BOOT_PARAMETERS_SHARE 8u
/** What an event takes in a buffer, with the names of threads. */
#define BOOT_PARAMETERS_EVENT_BYTES 64u
/** Events of a boot for each object that lives after it: it is allocated, and two others are allocated and freed. */
#define BOOT_PARAMETERS_EVENTS 5u

/**
 * Returns the MiB for "trace_buf_size=", which is of each CPU: a power of two. One CPU does most of a boot, so its
 * buffer alone has room for the events of all objects (at least 32 MiB), if all buffers together stay in their share of
 * the memory.
 */
uint32_t boot_parameters_buffer_mib(const struct boot_machine *m);

#endif
