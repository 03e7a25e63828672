/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tags with names of their own, as ALLIUM_TAG() leaves them: "tag0", "tag1" and so on.
 *
 *     named TAGS      accounts a byte for each of so many
 */
#include <stdlib.h>

#include "allium/tag.h"

#define MOST     10000
#define TEXT(x)  TEXT_(x)
#define TEXT_(x) #x

__asm__(
    "\t.set named_line, 0\n"
    "\t.pushsection allium_tags,\"aw\",@progbits\n"
    "\t.balign 8\n"
    "named:\n"
    "\t.popsection\n"
    "\t.macro named_tag\n"
    "\t.pushsection allium_texts,\"a\",@progbits\n"
    "named_text\\@:\t.asciz \"named\", \"tag\\@\", \"named.c\"\n"
    "\t.popsection\n"
    "\t.pushsection allium_tags,\"aw\",@progbits\n"
    "\t.long " TEXT(ALLIUM_TAG_VERSION) ", -1, 1, 0\n"
                                        "\t.long main-., named_text\\@-., allium_control_page-., named_line\n"
                                        "\t.popsection\n"
                                        "\t.set named_line, named_line + 1\n"
                                        "\t.endm\n"
                                        "\t.rept " TEXT(MOST) "\n"
                                                              "\tnamed_tag\n"
                                                              "\t.endr\n");
extern struct allium_tag named[MOST] __attribute__((visibility("hidden")));

int main(int argc, char **argv)
{
    int tags = argc > 1 ? atoi(argv[1]) : 0;
    for (int i = 0; i < tags; i++)
        allium_account(&named[i], 1);
    return 0;
}
