# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys memleak` of a command: objects that each function allocated and nobody freed, exactly.
#: programs leaks

. /tests/tap.sh
plan 8

allium sys memleak --json --period 1 --max-cost 0 --by site -- leaks >/tmp/rows 2>/tmp/said
equal "the program ends well" $? 0
holds "it says how it is attached" '^allium: ready: memleak using (session|uprobe)$' /tmp/said

live() { sed -n "s/.*\"site\":\"$1 .*\"live_bytes\":\([0-9]*\),.*\"live_objects\":\([0-9]*\),.*/\2 \1/p" /tmp/rows; }

equal "objects and bytes of malloc" "$(live leak_malloc)" "100 10000"
equal "... of calloc" "$(live leak_calloc)" "50 10500"
equal "... of realloc" "$(live leak_realloc)" "20 100000"
equal "... of posix_memalign" "$(live leak_aligned)" "10 5000"
equal "... of what was freed" "$(live free_each)" ""
holds "nothing was lost" '"lost_live_objects":0,.*"frees_not_seen":0,' /tmp/rows
