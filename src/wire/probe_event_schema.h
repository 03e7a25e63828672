/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_PROBE_EVENT_SCHEMA_H
#define WIRE_PROBE_EVENT_SCHEMA_H

/*
 * The events of a trace that probes on functions of the traced processes write (allium trace --function), beside those
 * of the kernel. Each probe has two event numbers: the first one for the event at a function's entry or at a static
 * probe, the next one for the event at the function's return. The class of the events has the name of the probe.
 *
 * Runs in: kernel, tool. Macros only: the kernel's side has its own names for integers.
 */

#define PROBE_EVENT_ID   33024u /* of the first probe */
#define PROBE_EVENTS_MAX 16u    /* probes of a trace */

/* The registers in which the first integers and pointers are passed, and those of a static probe. */
#define PROBE_FUNCTION_ARGUMENTS 6u
#define PROBE_STATIC_ARGUMENTS   12u

/*
 * The place of a value of a static probe: a constant; a register; or memory, at value + base + index * scale. `base`
 * and `index` are offsets in the kernel's struct pt_regs.
 */
#define PROBE_NO_REGISTER 0xffffu
#define PROBE_CONSTANT    0u
#define PROBE_REGISTER    1u
#define PROBE_MEMORY      2u

#endif
