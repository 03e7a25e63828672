# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys record` of a program whose calls are counted, and trace-cmd's own files of the same events: its trace.dat
# and its text of that are imported to the same cells.
#: programs asks
#: copies trace-cmd
#: memory 512M
#: long

. /tests/tap.sh
plan 16

# busiest FILE: how many buffers of 4096 bytes the call made for the program that makes most of them
busiest()
{
    allium sql "$1" --csv "SELECT max(n) FROM (SELECT sum(allocations) n FROM sys_kmem
        WHERE comm = 'asks' AND allocated_bytes = 4096 * allocations GROUP BY call_site)" | sed -n 2p
}

# cells FILE: what each call allocated of each cache; times and programs' names are the traces' own
cells()
{
    allium sql "$1" --csv "SELECT call_site, cache, sum(allocated_bytes), sum(requested_bytes), sum(allocations),
        sum(frees) FROM sys_kmem GROUP BY 1, 2 ORDER BY 1, 2"
}

# events FILE: the number in the first line of what was said
events() { sed -n 's/.*the kernel, .*, \([0-9,]*\) events$/\1/p' "$1" | tr -d ,; }

for calls in 1000 5000; do
    allium sys record --events slab --raw /tmp/raw.$calls -o /tmp/$calls.allium -- asks $calls >/tmp/out 2>/tmp/said.$calls
    equal "it records $calls calls" $? 0
    holds "nothing is lost" '^  lost       nothing$' /tmp/said.$calls
    sed 's/^/# /' /tmp/said.$calls
done
few=$(busiest /tmp/1000.allium)
many=$(busiest /tmp/5000.allium)
equal "calls" $((many - few)) 4000

allium sys import /tmp/raw.5000 -o /tmp/raw.allium 2>/tmp/said
equal "the kept pages are imported" $? 0
equal "with as many events" "$(events /tmp/said)" "$(events /tmp/said.5000)"
cells /tmp/5000.allium | grep -v 'allium itself' >/tmp/want
cells /tmp/raw.allium | grep -v 'allium itself' >/tmp/have
check "and the same cells" cmp /tmp/want /tmp/have

slab="-e kmem:kmalloc -e kmem:kfree -e kmem:kmem_cache_alloc -e kmem:kmem_cache_free"
[ ! -d /sys/kernel/tracing/events/kmem/kmalloc_node ] || slab="$slab -e kmem:kmalloc_node -e kmem:kmem_cache_alloc_node"
cd /tmp
for clock in mono local; do
    trace-cmd record -q -C $clock -b 8192 -o $clock.dat $slab asks 5000 >/tmp/out 2>&1
    allium sys import $clock.dat -o $clock.allium 2>/tmp/said
    equal "trace-cmd's file, clock $clock" $? 0
    sed 's/^/# /' /tmp/said
    trace-cmd report -i $clock.dat 2>/dev/null >$clock.txt
    allium sys import $clock.txt -o $clock.txt.allium 2>/tmp/said.txt
    equal "and its text have as many events" "$(events /tmp/said.txt)" "$(events /tmp/said)"
    cells $clock.allium >/tmp/want
    cells $clock.txt.allium >/tmp/have
    check "and the same cells" cmp /tmp/want /tmp/have
    # trace-cmd looks for the program in each folder of PATH
    n=$(($(busiest $clock.allium) - many))
    check "the program's calls" [ $n -ge 0 -a $n -le 4 ]
done
