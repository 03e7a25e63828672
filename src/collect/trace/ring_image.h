/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COLLECT_RING_IMAGE_H
#define COLLECT_RING_IMAGE_H

/*
 * The rings of a process image, which lie beside its ledger: mapped, with a reader, and, for the one reader that
 * empties them, with the positions in which the target sees how far they have been read.
 *
 * Runs in: the tool. Threads: one. Owns: the mappings and the reader, until ring_image_close().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "collect/ledger/ledger_dir.h"
#include "ring/ring_read.h"

struct ring_image {
    pid_t pid;
    uint64_t id; /* of the image */
    struct ring_reader *reader;
    void *map;
    size_t bytes;
    bool borrows;                     /* the mapping is the caller's */
    bool overwrites;                  /* a full ring overwrites its oldest events */
    struct ring_positions *positions; /* NULL: the target does not see how far the rings are read */
    int lock; /* for the one reader that empties them: a descriptor of the file, locked; -1: none */
};

/** Returns whether a file of this name has rings; sets `pid` and `id` to the process and the image they belong to. */
bool ring_image_name(const char *name, pid_t *pid, uint64_t *id);
/** Returns the path of the rings beside a ledger, which the caller frees. NULL: no path leads to it. */
char *ring_image_path(const struct ledger_entry *ledger);
/** Appends the name that a file of the image has with this suffix. */
void ring_image_add_name(struct buf *b, const struct ring_image *i, const char *suffix);
/** Opens the rings of that name in the folder, to empty them. Returns 0 or -errno; -EAGAIN: they are being made;
 * -EBUSY: another process empties them. */
int ring_image_open(struct ring_image *i, const char *folder, const char *name);
/** Opens them to look at what they have, which changes nothing for the target and for another reader. */
int ring_image_look(struct ring_image *i, const char *folder, const char *name);
/** Looks at rings that the caller has mapped: the kernel's. Returns 0 or -EINVAL. */
int ring_image_borrow(struct ring_image *i, void *map, size_t bytes);
/** Makes the next reading begin with the oldest events again. Only of rings that are looked at. */
void ring_image_begin_anew(struct ring_image *i);
/** Reads the next events of a ring; see ring_reader_next(). The target may then overwrite them: `out` has a copy. */
int ring_image_next(struct ring_image *i, uint32_t ring, struct ring_piece *out);
/** Returns whether no process maps the image in this folder any more, nor writes its rings. */
bool ring_image_has_ended(const struct ring_image *i, const char *folder);
/** Removes the files, and closes. */
void ring_image_remove(struct ring_image *i, const char *folder);
void ring_image_close(struct ring_image *i);

#endif
