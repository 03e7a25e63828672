/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_SYMBOL_H
#define SYMBOL_SYMBOL_H

/*
 * Names for code addresses in user-space modules: function, inlined callers, file and line. Not the kernel's symbols.
 *
 * Runs in: the tool. Threads: one struct symbols belongs to one thread at a time.
 * Owns: every string and frame handed out, until symbols_free().
 * Invariant: it opens no devices or pipes, and gives a name only if the file it came from has the build id the target
 * reported, be it a local one or one that a server sent.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbols;
struct symbol_servers;

/** Which file an address belongs to. Every pointer is the caller's and only read during the call. */
struct symbol_module {
    const char *path;              /* as the target saw it; "[vdso]", "[heap]", "" or NULL have no file */
    const char *root;              /* what to put before it, such as "/proc/123/root"; "" or NULL: nothing */
    const unsigned char *build_id; /* of the image in memory */
    size_t build_id_len;           /* bytes; 0: not known */
    bool sent;                     /* by a server: no other file is opened because this one names it */
};

struct symbol_frame {
    const char *function; /* demangled, never NULL or ""; "libfoo.so.1+0x1234" when not known */
    const char *file;     /* NULL: not known */
    unsigned line;        /* 0: not known */
    bool inlined;         /* its code is part of the next frame's function */
};

/** Innermost inlined function first; the last one is the function that has the code. At least one. */
struct symbol_frames {
    const struct symbol_frame *at;
    size_t len;
};

/**
 * Never NULL. What is found out is kept in cache_dir (made if its parent exists; one file for each build id); NULL: not
 * kept.
 */
struct symbols *symbols_new(const char *cache_dir);

/** Whom symbols_fetch() asks; NULL: nobody. They stay the caller's, and must live longer. */
void symbols_use_servers(struct symbols *s, struct symbol_servers *servers);

/** Writes what is new to the cache, then forgets everything. NULL is allowed. */
void symbols_free(struct symbols *s);

/** Writes what is new to the cache now. Failure is silent: the cache is a matter of speed only. */
void symbols_save(struct symbols *s);

/** Before addresses are resolved: their module's debug file is wanted, if no file here tells what it would. */
void symbols_want(struct symbols *s, const struct symbol_module *module, const uint64_t *addresses, size_t n);
/** Asks servers for what is wanted, as long as symbol/debuginfod_servers.h lets them; names are better from then on. */
void symbols_fetch(struct symbols *s);
/** How many files from servers are in use by now: names from before the latest of them may be worse. */
size_t symbols_came(const struct symbols *s);
/** Whether names may still become better. */
bool symbols_pending(struct symbols *s);

/**
 * Names n addresses of one module. An address is the ELF's own virtual address (pc less the load bias) of a byte inside
 * the instruction meant: for a return address, one less. Call it with many addresses at once where you can.
 *
 * out[0..n) is filled whatever the result; an address that has no name is "file+0xaddress". Returns 0 when a file (or
 * the cache) could be consulted, else why none could: -ENOENT no such file, -ESTALE the file there now has another
 * build id, -ENOEXEC it is not an ELF program or library, or what opening it gave (-EACCES, -EPERM, -EIO, ...).
 */
int symbols_resolve(struct symbols *s, const struct symbol_module *module, const uint64_t *addresses,
                    size_t n, struct symbol_frames *out);

#endif
