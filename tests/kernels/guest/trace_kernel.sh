# SPDX-License-Identifier: BSD-2-Clause
#
# `allium trace --kernel`: each group of events loads, and they are as many as the kernel counts for the process. Reclaim
# and an OOM kill in cgroups with a limit. The CPU of a guest has no counter of one rate: the clock is said.
#: programs steps hog
#: modules lzo-rle zram
#: parameters tsc=unstable clocksource=hpet
#: memory 512M
#: seconds 900

. /tests/tap.sh
. /tests/reclaim.sh
plan 28
rounds=500

# traced GROUPS COMMAND...: into /tmp/t; its events are in /tmp/rows. In the cgroup `inside`, allium, too.
inside=/sys/fs/cgroup
traced()
{
    local groups=$1
    shift
    rm -rf /tmp/t
    sh -c "echo \$\$ >$inside/cgroup.procs && exec \"\$@\"" sh \
        allium trace --kernel $groups --kernel-buffer 8M -o /tmp/t -- "$@" >/tmp/out 2>/tmp/said
    code=$?
    allium events /tmp/t --json >/tmp/rows
}

# between MARK PATTERN [FILE]: how many of the rows between two allocations match
between()
{
    awk -v first="\"size_bytes\":${1}0001," -v last="\"size_bytes\":${1}0002," -v wanted="$2" '
        /"event":"(allium:)?malloc"/ && index($0, first) { on = 1 }
        /"event":"(allium:)?malloc"/ && index($0, last) { on = 0 }
        on && $0 ~ wanted { n++ }
        END { print n + 0 }' ${3:-/tmp/rows}
}

# near NAME HAVE WANT: as many, or a few more, of the time between an allocation and the call of getrusage
near() { check "$1 ($2, $3)" test "$2" -ge "$3" -a "$2" -le $(($3 + 5)); }

printed() { sed -n "s/^$1 //p" /tmp/out; }

for group in kmem pages faults maps rss sched; do
    traced $group steps $rounds
    equal "$group: the program runs" $code 0
    holds "$group: nothing is lost" "^allium: [1-9][0-9]* events of the kernel, 0 lost" /tmp/said
    case $group in
    faults)
        first=$(printed pages)
        allium events /tmp/t --json --where "event:malloc or address>=$first address<$((first + 4096 * rounds))" >/tmp/these
        equal "each page that is touched is a fault" "$(between 1 '"event":"kernel:page_fault_end".*"kind":"minor"' /tmp/these)" $rounds
        near "page faults are those that getrusage counts" "$(between 1 '"event":"kernel:page_fault_end".*"kind":"minor"')" "$(printed faults)"
        ;;
    sched)
        near "switches are those that getrusage counts" "$(between 3 '"event":"kernel:sched_switch".*[{,]"comm":"steps"')" "$(printed switches)"
        ;;
    maps)
        equal "each mapping is there" "$(between 2 '"event":"kernel:mmap"')" $rounds
        equal "each end of one, too" "$(between 2 '"event":"kernel:munmap"')" $rounds
        ;;
    rss)
        check "resident memory grows with each page, or some of them" test "$(between 1 '"event":"kernel:rss".*"kind":"anonymous"')" -ge $((rounds / 64))
        ;;
    kmem)
        check "each pipe takes objects" test "$(between 4 '"event":"kernel:(kmalloc|cache_alloc)"')" -ge $((3 * rounds))
        ;;
    pages)
        check "each page that is touched is allocated" test "$(between 1 '"event":"kernel:page_alloc"')" -ge $rounds
        ;;
    esac
done
holds "the clock is CLOCK_MONOTONIC, and why" "CLOCK_MONOTONIC.*: the kernel's clock source is hpet" /tmp/said

allium env --trace >/tmp/env
holds "... in an environment, too" "ALLIUM_SITES='?8,clock=mono'?\$" /tmp/env
allium trace --flight --kernel faults --snapshot-on 'event:malloc where size=20001' -o /tmp/f -- steps $rounds >/tmp/out 2>/tmp/said
first=$(printed pages)
equal "--flight: the kernel's part is in the snapshot" "$(allium events /tmp/f/1-event --json --where "event:kernel:page_fault_begin address>=$first address<$((first + 4096 * rounds))" | grep -c '"mode":"user"')" $rounds
rm -rf /tmp/f

prepare 64 18
echo 96M >$small/memory.max
inside=$small
traced reclaim hog 120
equal "reclaim: the program runs" $code 0
check "reclaim begins" grep -q '"event":"kernel:reclaim_begin".*"kind":"cgroup","order":0' /tmp/rows
equal "... and ends as often" "$(grep -c '"event":"kernel:reclaim_end".*"kind":"cgroup"' /tmp/rows)" "$(grep -c '"event":"kernel:reclaim_begin"' /tmp/rows)"
put_back

mkdir $small && echo 96M >$small/memory.max
traced oom hog 200
equal "oom: the program is killed" $code 137
equal "its event names the victim" "$(grep -c '"event":"kernel:oom_victim".*"victim_comm":"hog"' /tmp/rows)" 1
rmdir $small
