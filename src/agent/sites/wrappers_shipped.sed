# SPDX-License-Identifier: BSD-2-Clause
# A list of wrappers (share/allium/wrappers) as a text of C: each pattern with a ';' behind it.
/^[ \t]*#/d
/^[ \t]*$/d
s/[ \t]#.*//
s/[ \t]*$//
s/[\\"]/\\&/g
s/.*/"&;"/
