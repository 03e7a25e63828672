# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys vmscan` with every method, without and with the multi-generational LRU, at a cgroup's limit and once for the whole
# machine: pages looked at and reclaimed, of files and anonymous ones, are together those that /proc/vmstat counts. That LRU
# also looks at pages that it only sorts, of the hog's stack for one. Where it has no events (6.1) they are null, in drsnoop too.
#: programs hog
#: modules lzo-rle zram
#: seconds 900
#: long

. /tests/tap.sh
. /tests/reclaim.sh
plan 22

enabled=/sys/kernel/mm/lru_gen/enabled
was=$(cat $enabled)
prepare 128 32

for on in n y; do
    echo $on >$enabled
    silent=n
    [ $on = y ] && uname -r | grep -q '^6\.1\.' && silent=y
    for method in tp_btf raw_tp tp; do
        begin vmscan --attach $method --interval 1h
        within dd if=/dev/zram$disk of=/dev/null bs=1M 2>/dev/null
        within dd if=/dev/zero of=/dev/zram$disk bs=1M 2>/dev/null
        within hog 24
        [ $method = tp_btf ] && hog $(($(sed -n 's/MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 1024 + 24))
        end
        agrees "$method, $on"
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
put_back
