# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys slabratetop` of a program whose calls are counted: two runs that differ in 4000 calls differ in 4000 buffers
# of names_cache, taken and given back. The cache of a free is read from the object's page, where the kernel has put its memory.
#: programs asks

. /tests/tap.sh
plan 7

# names METHOD CALLS: allocations and frees of names_cache
names()
{
    allium sys slabratetop --attach "$1" --interval 1h --comm asks --json -- asks "$2" 2>/tmp/stderr >/tmp/rows
    sed -n 's/.*"cache":"names_cache",.*"allocations":\([0-9]*\),"frees":\([0-9]*\),.*/\1 \2/p' /tmp/rows
}

allium sys slabratetop --duration 100ms >/tmp/rows 2>/tmp/said
holds "it takes an attach method on this kernel" '^allium: ready: slabratetop using ' /tmp/said
for method in raw_tp tp; do
    few=$(names $method 1000)
    many=$(names $method 5000)
    equal "$method: allocations" $((${many% *} - ${few% *})) 4000
    equal "$method: frees" $((${many#* } - ${few#* })) 4000
    holds "$method: nothing was lost" '"lost_events":0,"lost_rows":0' /tmp/rows
done
