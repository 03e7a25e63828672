/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_DOCTOR_BOOT_H
#define CLI_DOCTOR_BOOT_H

/*
 * `allium doctor --boot`: the parameters with which the kernel traces its own allocations from early in the boot on.
 *
 * Runs in: the tool, as root. Threads: one. Owns: nothing.
 */

/** Prints what to add to the kernel's command line, and why. Returns the exit code. */
int doctor_boot(void);

#endif
