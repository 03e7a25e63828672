/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_IMPORT_SCRIPT_H
#define CLI_IMPORT_SCRIPT_H

/*
 * The script that packs on another machine what `allium sys import` wants (pack.sh), made into C by embed_script.py.
 *
 * Runs in: the tool. Threads: any. Owns: nothing.
 */

/** Its text. */
extern const char import_script[];

#endif
