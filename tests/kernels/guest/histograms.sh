# SPDX-License-Identifier: BSD-2-Clause
#
# `--hist` of tools with rows, with every method that has it: two runs that differ in 4000 calls differ in 4000 buffers of 4096 bytes that
# were asked for, and that lived; each fault has a time. A row of a process has its container, by the kernel's own words for it.
#: programs asks toucher

. /tests/tap.sh
plan 14

# rows TOOL METHOD COMMAND...: those of the command, in /tmp/rows
rows()
{
    local tool=$1 method=$2
    shift 2
    allium sys $tool --attach $method --hist --comm ${1##*/} --json -- "$@" 2>/tmp/stderr >/tmp/rows </tmp/words
}

# counted PATTERN: all that is in the histograms of rows that have it
counted() { grep -e "$1" /tmp/rows | grep -o '"count":[0-9]*' | awk -F: '{ n += $2 } END { print n + 0 }'; }

# of_4096 WHAT: how many in the slot of 4096 bytes
of_4096() { sed -n 's/.*"from":4096,"to":8192,"count":\([0-9]*\).*/\1/p' /tmp/rows; }

: >/tmp/words
for method in raw_tp tp; do
    rows "kmem --by process" $method asks 1000
    few=$(of_4096)
    rows "kmem --by process" $method asks 5000
    equal "kmem, $method: of 4096 bytes" $(($(of_4096) - few)) 4000
    holds "kmem, $method: nothing was lost" '"lost_events":0,"lost_rows":0' /tmp/rows
    rows "slabratetop --interval 1h" $method asks 1000
    few=$(counted '"cache":"names_cache"')
    rows "slabratetop --interval 1h" $method asks 5000
    equal "slabratetop, $method: lives" $(($(counted '"cache":"names_cache"') - few)) 4000
    rows "kpages --by process" $method asks 1000
    equal "kpages, $method: blocks" $(counted '"pid"') $(sed -n 's/.*"allocations":\([0-9]*\).*/\1/p' /tmp/rows)
done
echo 'heap 500' >/tmp/words
for method in fexit perf; do
    rows faults $method toucher
    user=$(sed -n 's/.*"user":\([0-9]*\),.*/\1/p' /tmp/rows) kernel=$(sed -n 's/.*"kernel":\([0-9]*\),.*/\1/p' /tmp/rows)
    check "faults, $method: there were some ($user)" [ $user -ge 500 ]
    equal "faults, $method: times" $(counted '"pid"') $((user + kernel))
done

id=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
group=$(sed -n 's/^cgroup2* \(\S*\) cgroup2 .*/\1/p' /proc/mounts)/docker-$id.scope
mkdir $group
allium sys kmem --by process --json -- sh -c "echo \$\$ >$group/cgroup.procs; exec asks 1000" 2>/tmp/stderr >/tmp/rows
holds "kmem: the container" '"comm":"asks","container":"0123456789ab"' /tmp/rows
allium sys faults --json -- sh -c "echo \$\$ >$group/cgroup.procs; exec asks 1000" 2>/tmp/stderr >/tmp/rows
holds "faults: the container" '"comm":"asks","container":"0123456789ab"' /tmp/rows
rmdir $group
