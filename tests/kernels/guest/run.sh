# SPDX-License-Identifier: BSD-2-Clause
#
# The agent on another kernel: a program of which it is known what it allocates.
#: programs allocates
#: copies ls

. /tests/tap.sh
plan 6

check "ls is recorded" allium run --period 1 -o ls.allium -- /usr/bin/ls -lR /sys/kernel/mm
check "what it did can be read" allium report ls.allium
allium run --period 1 -o known.allium -- allocates 1000 4096 >/tmp/said 2>&1
equal "the program's exit code is ours" $? 7
allium report known.allium >/tmp/report
holds "1000 objects of 4096 bytes are still held" 'at exit +3\.91 MiB in 1\.00k objects' /tmp/report
holds "main holds them" '^ +3\.91 MiB +100 % +1\.00k ' /tmp/report
holds "nothing was lost" '^ +nothing$' /tmp/report
