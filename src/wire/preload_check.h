/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WIRE_PRELOAD_CHECK_H
#define WIRE_PRELOAD_CHECK_H

/*
 * Decides whether the program in a file can run with the agent preloaded. `allium` checks a program before it starts
 * the program, and the agent checks a program before the target executes it. A program that cannot carry the agent, but
 * is started with it, ends at its start, or its loader prints an error, or it runs unobserved.
 *
 * Runs in: the tool and target: no malloc, no state, some 30 system calls for most ELF files.
 * Threads: any, including vfork children and signal handlers.
 */

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/sigsafe/compiler.h"

#define PRELOAD_CHECK_NAME_BYTES 64
#define PRELOAD_CHECK_LINE_BYTES 256
#define PRELOAD_CHECK_BLOCKS     4u

/* The working memory of one check. The caller provides it: in a target it is too large for the stack of a
 * thread. */
struct preload_check {
    int fd;
    struct stat st;
    Elf64_Ehdr header;
    uint64_t dynamic_at, dynamic_bytes; /* offset and length of the dynamic section */
    /* offsets in the file of the tables that the dynamic section names; 0: it does not name the table */
    uint64_t strings, symbols, gnu_hash;
    struct {
        uint32_t buckets, first, bloom_words, bloom_shift;
    } hash; /* the start of DT_GNU_HASH; `buckets` is 0 if a table is missing or unusable */
    char interpreter[PRELOAD_CHECK_NAME_BYTES]; /* the loader's path, or the end of a longer one; "": none */
    char text[PRELOAD_CHECK_NAME_BYTES];
    char line[PRELOAD_CHECK_LINE_BYTES]; /* the beginning of a script, with its first line; "": no script */
    uint64_t strings_max;  /* set by the caller: .symtab is not searched if its strings have more bytes */
    const char *allocator; /* if the result is PRELOAD_CHECK_OWN_MALLOC: the program's allocator function */
    union {
        Elf64_Sym symbols[170];
        char text[170 * sizeof(Elf64_Sym)];
    } piece;                     /* a part of the symbol table, or of its strings */
    struct preload_check_block { /* one of the parts of the file that were read last */
        uint64_t from;
        size_t length;
        char bytes[1024];
    } blocks[PRELOAD_CHECK_BLOCKS];
    uint32_t next_block; /* modulo PRELOAD_CHECK_BLOCKS: the block that the next pread() replaces */
};

enum preload_check_result {
    PRELOAD_CHECK_YES,        /* no obstacle found, or the file is not readable or not a program */
    PRELOAD_CHECK_PRIVILEGED, /* set-uid, set-gid, file capabilities: the loader ignores LD_PRELOAD */
    PRELOAD_CHECK_FOREIGN,    /* another architecture, word size or C library */
    PRELOAD_CHECK_STATIC,     /* no loader that could preload anything */
    PRELOAD_CHECK_SANITIZER, /* has a sanitizer, which replaces malloc, and aborts if a library is preloaded */
    PRELOAD_CHECK_NO_AGENT, /* the agent's file is not readable at its path, as after chroot(): see agent/exec/exec.c */
    /* the program carries the agent, but the recorder cannot read its ledger: see run/ledger_tracker.c */
    PRELOAD_CHECK_HIDDEN,
    /* can carry the agent, but defines an allocator of its own, whose calls the agent does not see */
    PRELOAD_CHECK_OWN_MALLOC,
    /* From here on: the process carries the agent, but the agent could not make a ledger (agent/process.c). */
    PRELOAD_CHECK_FILE_SIZE, /* RLIMIT_FSIZE is smaller than a ledger */
    PRELOAD_CHECK_NO_ROOM,   /* the tmpfs of the ledgers is full */
    PRELOAD_CHECK_NO_MEMORY, /* no memory or address space: RLIMIT_AS, memory cgroup */
    PRELOAD_CHECK_NO_LEDGER, /* another reason */
    PRELOAD_CHECK_KINDS
};

/** Checks `path`, relative to `dir_fd` (AT_FDCWD) as in execveat(2). For a script, checks its interpreter. */
ONE_COPY enum preload_check_result preload_check_judge(struct preload_check *c, int dir_fd, const char *path);
/** Checks the program in a file that is open for reading. For a script, checks its interpreter. */
ONE_COPY enum preload_check_result preload_check_judge_file(struct preload_check *c, int fd);

#endif
