/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_INSTALLED_FILE_H
#define BASE_INSTALLED_FILE_H

/* Files that are installed with the command. */

/**
 * Returns the path of the file `name`: beside the running command, as in a build folder; else in the folder `relative`
 * to that of the command, so that an installation may be copied elsewhere; else in the folder `absolute`. The caller
 * frees it. NULL: the file is in none of them.
 */
char *installed_file_find(const char *name, const char *relative, const char *absolute);

#endif
