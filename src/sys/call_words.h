/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SYS_CALL_WORDS_H
#define SYS_CALL_WORDS_H

/*
 * Names for the arguments and results of system calls about memory.
 *
 * Runs in: the tool.
 */

#include <stdint.h>

#include "base/buf.h"

struct call_word {
    uint32_t bits;
    const char *word;
};

/** Appends the words of the bits that are set, with | between them, and a rest as a number: "MAP_PRIVATE|0x800000". */
void call_words_add(struct buf *b, uint32_t flags, const struct call_word *words);

/** "PROT_READ|PROT_WRITE"; of no bits PROT_NONE. */
void call_words_prot(struct buf *b, uint32_t prot);
/** Flags of mmap(), with the size of huge pages in words: "MAP_PRIVATE|MAP_HUGETLB|MAP_HUGE_2MB". */
void call_words_mmap(struct buf *b, uint32_t flags);
/** "MADV_DONTNEED"; a number that has no name is appended as it is. */
void call_words_advice(struct buf *b, uint32_t advice);
/** Returns "ENOMEM" for -ENOMEM; NULL: it is no error. */
const char *call_words_error(int64_t result);

#endif
