/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYMBOL_SYMBOL_H
#define SYMBOL_SYMBOL_H

/*
 * Names for code addresses in user-space modules: function, inlined callers, file and line. Not for kernel
 * addresses.
 *
 * Runs in: the tool. Threads: one struct symbols belongs to one thread at a time.
 * Owns: every string and frame it returns, until symbols_free().
 * Invariant: it opens no devices or pipes. It gives a name only if the file of the name has the build id that
 * the target reported; this holds for local files and for files from servers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbols;
struct symbol_servers;

/** The file to which an address belongs. The pointers belong to the caller, and are read only during the
 * call. */
struct symbol_module {
    const char *path;              /* as the target saw it; "[vdso]", "[heap]", "" or NULL have no file */
    const char *root;              /* prefix for the path, such as "/proc/123/root"; "" or NULL: none */
    const unsigned char *build_id; /* of the image in memory */
    size_t build_id_len;           /* bytes; 0: not known */
    bool sent;                     /* the file came from a server: files that it names are not opened */
    bool relocatable;              /* a module of the kernel: addresses are those of relocatable_lay_out() */
};

struct symbol_frame {
    const char *function; /* demangled, never NULL or ""; "libfoo.so.1+0x1234" when not known */
    const char *file;     /* NULL: not known */
    unsigned line;        /* 0: not known */
    bool inlined;         /* its code is part of the function of the next frame */
};

/** The innermost inlined function comes first; the last one is the function that contains the code. At least
 * one. */
struct symbol_frames {
    const struct symbol_frame *at;
    size_t len;
};

/**
 * Never returns NULL. Names are stored in cache_dir, in one file for each build id. The directory is made if
 * its parent exists; NULL: nothing is stored.
 */
struct symbols *symbols_new(const char *cache_dir);

/** Sets the servers that symbols_fetch() asks; NULL: none. They belong to the caller and must live longer. */
void symbols_use_servers(struct symbols *s, struct symbol_servers *servers);

/** Writes new names to the cache, then frees everything. NULL is allowed. */
void symbols_free(struct symbols *s);

/** Writes new names to the cache now. A failure is not reported: the cache only saves time. */
void symbols_save(struct symbols *s);

/** Called before addresses are resolved. Adds the module's debug file to the wanted files if the files here
 * cannot give its names. */
void symbols_want(struct symbols *s, const struct symbol_module *module, const uint64_t *addresses, size_t n);
/** Asks servers for the wanted files, within the limits of symbol/debuginfod_servers.h. Afterwards names may
 * be better. */
void symbols_fetch(struct symbols *s);
/** Returns how many files from servers are in use. Names that were resolved before the last one came may be
 * worse. */
size_t symbols_came(const struct symbols *s);
/** Returns whether names may still become better. */
bool symbols_pending(struct symbols *s);

/**
 * Names n addresses of one module. An address is the ELF file's virtual address (pc less the load bias) of a
 * byte inside the instruction: for a return address, one less. Call it with many addresses at once where
 * possible.
 *
 * out[0..n) is filled whatever the result; an address without a name is "file+0xaddress". Returns 0 when a
 * file (or the cache) could be read, else the reason: -ENOENT no such file, -ESTALE the file has another
 * build id by now, -ENOEXEC it is not an ELF program or library, or the error of opening it (-EACCES, -EPERM,
 * -EIO, ...).
 */
int symbols_resolve(struct symbols *s, const struct symbol_module *module, const uint64_t *addresses,
                    size_t n, struct symbol_frames *out);

#endif
