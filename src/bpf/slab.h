/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BPF_SLAB_H
#define BPF_SLAB_H

/*
 * Names of slab caches, as the tools of the slab allocator keep them: in the map cache_names, each with a number.
 *
 * Runs in: kernel and tool.
 */

#define SLAB_NAME_BYTES 48
#define SLAB_NAMES_MOST 2048

#endif
