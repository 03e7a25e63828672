# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys record` counts a large object once, though since 6.11 the kernel has two events of it: of a program whose
# large objects are counted, in the recording, its raw pages, and the text of the kernel's own trace.
#: programs resizes
#: memory 512M
#: long

. /tests/tap.sh
plan 11
CALLS=700

# large FILE: "allocations bytes requested" of the program's large objects, by all calls
large()
{
    allium sql "$1" --csv "SELECT sum(allocations), sum(allocated_bytes), sum(requested_bytes) FROM sys_kmem
        WHERE comm = 'resizes' AND allocations > 0 AND requested_bytes = 10240 * allocations" | tr ',' ' ' | tr -d '\r' | sed 1d
}
want="$CALLS $((CALLS * 16384)) $((CALLS * 10240))"

# sites FILE: calls of the program whose objects have whole pages
sites()
{
    allium sql "$1" --csv "SELECT DISTINCT replace(call_site, ' (helper)', '') FROM sys_kmem
        WHERE comm = 'resizes' AND allocations > 0 AND requested_bytes = 10240 * allocations" | sed '1d; s/+.*//'
}

allium sys record --events slab --raw /tmp/raw -o /tmp/a.allium -- resizes $CALLS >/tmp/out 2>/tmp/said
equal "it records" $? 0
sed 's/^/# /' /tmp/said
holds "nothing is lost" '^  lost       nothing$' /tmp/said
equal "each is one allocation" "$(large /tmp/a.allium)" "$want"
equal "of the call that asks for it" "$(sites /tmp/a.allium)" pipe_resize_ring
implied=$(sed -n 's/^  freed .* and \([0-9,]*\) without an event.*/\1/p' /tmp/said | tr -d ,)
check "and its free is not implied (${implied:-0})" [ ${implied:-0} -lt $((CALLS / 4)) ]

allium sys record --events slab --stacks kernel -o /tmp/b.allium -- resizes $CALLS >/tmp/out 2>/tmp/said
holds "with stacks, nothing is lost" '^  lost       nothing$' /tmp/said
equal "each is one allocation" "$(large /tmp/b.allium)" "$want"

allium sys import /tmp/raw -o /tmp/c.allium 2>/tmp/said
equal "the kept pages are imported to as many" "$(large /tmp/c.allium)" "$want"

trace=/sys/kernel/tracing/instances/large
mkdir $trace
echo 16384 >$trace/buffer_size_kb
for event in kmalloc kmalloc_node kfree; do
    [ ! -d $trace/events/kmem/$event ] || echo 1 >$trace/events/kmem/$event/enable
done
resizes $CALLS
echo 0 >$trace/tracing_on
cat $trace/trace >/tmp/trace.txt
rmdir $trace
events=$(grep -c 'resizes-.*: kmalloc.* bytes_req=10240 ' /tmp/trace.txt)
case $(uname -r) in
6.1.*) want_events=$CALLS ;;
*) want_events=$((2 * CALLS)) ;;
esac
equal "the kernel itself has events" "$events" $want_events
allium sys import /tmp/trace.txt -o /tmp/d.allium 2>/tmp/said
equal "its text is imported to as many" "$(large /tmp/d.allium)" "$want"
equal "of the call" "$(sites /tmp/d.allium)" pipe_resize_ring
