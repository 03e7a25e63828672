/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_ADVISE_SOURCE_H
#define CLI_ADVISE_SOURCE_H

/*
 * What `allium sys advise` judges: this kernel as it is now, or a recording.
 *
 * Runs in: the tool. Threads: one. Owns: everything, until advise_source_release().
 */

#include "base/error.h"
#include "cli/sys/state_rows.h"
#include "model/kernel/advice/advice.h"

struct advise_source {
    struct advice_input input;
    struct state_rows states; /* of a recording; this kernel has one */
    char *release;            /* of the kernel; NULL: not known */
    uint64_t taken_ns;        /* of the latest state; 0: none */
};

/**
 * Reads this kernel's state, which lacks what only a recording has. `root` is put before its paths; it is "" except in
 * tests. Returns 0; -EACCES with a line: nothing can be read.
 */
int advise_source_read(struct advise_source *s, const char *root, struct error *e);
/** Reads a recording. Returns 0 or -errno with a line; -ENODATA: it has neither a state nor rows of sys kmem. */
int advise_source_load(struct advise_source *s, const char *path, struct error *e);
/**
 * Takes the options of a configuration, and the source that they build. `config` NULL: the one of the state. `source`
 * NULL: none. Returns 0 or -errno with a line.
 */
int advise_source_options(struct advise_source *s, const char *config, const char *source, struct error *e);
void advise_source_release(struct advise_source *s);

#endif
