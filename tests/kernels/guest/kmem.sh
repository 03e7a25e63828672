# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys kmem` of a program whose calls are counted: of two runs that differ in 4000 calls, the busiest call site
# differs in 4000 buffers of 4096 bytes, with every method. Processes that end free objects by RCU, without an event: their
# addresses return.
#: programs asks

. /tests/tap.sh
plan 8

# busiest METHOD CALLS: "allocations allocated_bytes" of the first row
busiest()
{
    allium sys kmem --attach "$1" --sort allocations --top 1 --json -- asks "$2" 2>/tmp/stderr >/tmp/rows
    sed -n 's/.*"allocated_bytes":\([0-9]*\),.*"allocations":\([0-9]*\),.*/\2 \1/p' /tmp/rows
}

allium sys kmem --live --json -- sh -c 'for i in $(seq 200); do asks 1; done' 2>/tmp/said >/tmp/rows
holds "an address that returns is noticed" '"frees_without_event":[1-9]' /tmp/rows
allium sys kmem --duration 100ms >/tmp/rows 2>/tmp/said
holds "it takes the best attach method on this kernel" '^allium: ready: kmem using raw_tp$' /tmp/said
for method in raw_tp tp; do
    few=$(busiest $method 1000)
    many=$(busiest $method 5000)
    equal "$method: calls" $((${many% *} - ${few% *})) 4000
    equal "$method: bytes" $((${many#* } - ${few#* })) $((4000 * 4096))
    holds "$method: nothing was lost" '"lost_events":0,"lost_rows":0' /tmp/rows
done
