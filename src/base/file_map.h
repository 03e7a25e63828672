/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_FILE_MAP_H
#define BASE_FILE_MAP_H

/*
 * Shared mappings of files that others may shorten while they are mapped, such as the rings of a traced program. An
 * access behind the end of such a file raises SIGBUS. A handler then replaces the page by one of zeros, and the access
 * is repeated: a reader that trusts no value in the file goes on.
 *
 * The handler is installed when a file is mapped. Any other SIGBUS has the effect that it had before.
 *
 * Runs in: the tool. Threads: any. SIGBUS must not be blocked in a thread that uses such a mapping.
 * Owns: the mapping, until file_map_close().
 */

#include <stddef.h>

/** Maps the first `bytes` of the file. `protection`: as of mmap(2). Returns the address, or NULL, with errno. */
void *file_map_open(int fd, size_t bytes, int protection);
void file_map_close(void *map, size_t bytes); /* NULL is allowed */

#endif
