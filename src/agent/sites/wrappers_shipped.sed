# SPDX-License-Identifier: BSD-2-Clause
# Converts a list of wrappers (share/allium/wrappers) to string literals of C: one for each pattern, which ends in ';'.
/^[ \t]*#/d
/^[ \t]*$/d
s/[ \t]#.*//
s/[ \t]*$//
s/[\\"]/\\&/g
s/.*/"&;"/
