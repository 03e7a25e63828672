# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys vmscan` on every rung, without and with the multi-generational LRU, at a cgroup's limit and once for the whole
# machine: pages looked at and reclaimed, of files and anonymous ones, are together those that /proc/vmstat counts. That LRU
# also looks at pages that it only sorts, of the hog's stack for one. Where it has no events (6.1) they are null, in drsnoop too.
#: programs hog
#: modules lzo-rle zram
#: seconds 400

. /tests/tap.sh
plan 22

enabled=/sys/kernel/mm/lru_gen/enabled
was=$(cat $enabled)
small=/sys/fs/cgroup/small
mkdir $small && echo 16M >$small/memory.max
echo 128M >/sys/block/zram0/disksize
echo 32M >/sys/block/zram$(cat /sys/class/zram-control/hot_add)/disksize
mkswap /dev/zram0 >/dev/null && swapon /dev/zram0
dd if=/dev/zero of=/dev/zram1 bs=1M 2>/dev/null # pages of files: a device's
echo 3 >/proc/sys/vm/drop_caches

# within COMMAND...: in the small cgroup
within() { sh -c "echo \$\$ >$small/cgroup.procs && exec \"\$@\"" sh "$@"; }

counters() { echo $(counter pgscan_file) $(counter pgscan_anon) $(counter pgsteal_file) $(counter pgsteal_anon); }

# begin TOOL OPTION...: it is ready, and what the kernel has counted so far
begin()
{
    rm -f /tmp/said
    allium sys "$@" --json >/tmp/rows 2>/tmp/said &
    tool=$!
    until grep -qs ready: /tmp/said || ! kill -0 $tool; do usleep 100000; done
    set -- $(counters)
    scanned=$1 scanned_anon=$2 reclaimed=$3 reclaimed_anon=$4
}

# end: and how far the kernel has counted, in `counted`, when kswapd has come to its end
end()
{
    now=
    until [ "$now" = "$(counters)" ]; do now=$(counters) && sleep 1; done
    kill -INT $tool
    wait $tool
    set -- $(counters)
    counted="$(($1 - scanned)) $(($2 - scanned_anon)) $(($3 - reclaimed)) $(($4 - reclaimed_anon))"
}

# sum NAME: of a column
sum() { sed -n 's/.*"'$1'":\([0-9][0-9]*\).*/\1/p' /tmp/rows | awk '{ n += $1 } END { print n + 0 }'; }
sums() { echo "$(sum scanned_file_pages) $(sum scanned_anonymous_pages) $(sum clean_pages) $(sum anonymous_pages)"; }

# agrees WHAT: with the kernel's counts; where it tells nothing, no row has any, and that is said
agrees()
{
    grep '"reclaim":"\(memcg\|direct\|kswapd\)"' /tmp/rows >/tmp/phases
    check "$1: the kernel reclaimed pages ($counted)" test "${counted##* }" -gt 0
    if [ $silent = n ]; then
        equal "$1: pages are those that the kernel counts" "$(sums)" "$counted"
        holds "$1: all are known" '"lost_rows":0,.*"untold":0}' /tmp/rows
    else
        equal "$1: no page is told of" "$(grep -c '"scanned_pages":null,"reclaimed_pages":null,' /tmp/phases)" "$(wc -l </tmp/phases)"
        holds "$1: which is said" '"lost_rows":0,.*"untold":[1-9]' /tmp/rows
    fi
}

for on in n y; do
    echo $on >$enabled
    silent=n
    [ $on = y ] && uname -r | grep -q '^6\.1\.' && silent=y
    for rung in tp_btf raw_tp tp; do
        begin vmscan --attach $rung --interval 1h
        within dd if=/dev/zram1 of=/dev/null bs=1M 2>/dev/null
        within dd if=/dev/zero of=/dev/zram1 bs=1M 2>/dev/null
        within hog 24
        [ $rung = tp_btf ] && hog $(($(sed -n 's/MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 1024 + 24))
        end
        agrees "$rung, $on"
    done
    begin drsnoop
    within hog 24
    end
    set -- $counted
    check "drsnoop, $on: the kernel looked at pages ($2)" test $2 -gt 0
    case $silent in
    n) equal "drsnoop, $on: at those" "$(sum scanned_pages)" $(($1 + $2)) ;;
    y) equal "drsnoop, $on: no page is told of" "$(grep -c '"scanned_pages":null,' /tmp/rows)" "$(grep -c '"reclaim":' /tmp/rows)" ;;
    esac
done
echo $was >$enabled
swapoff /dev/zram0
rmdir $small
