# SPDX-License-Identifier: BSD-2-Clause
#
# What guest tests of reclaim share: `. /tests/reclaim.sh`, after tap.sh. A cgroup of 16 MiB, swap on zram, pages of files on
# another one, a tool at work, and the kernel's own counts beside it. Modules are lzo-rle and zram, programs hog.

small=/sys/fs/cgroup/small

# prepare SWAP FILE: of these sizes in MiB
prepare()
{
    mkdir $small && echo 16M >$small/memory.max
    echo $1M >/sys/block/zram0/disksize
    disk=$(cat /sys/class/zram-control/hot_add)
    echo $2M >/sys/block/zram$disk/disksize
    mkswap /dev/zram0 >/dev/null && swapon /dev/zram0
    dd if=/dev/zero of=/dev/zram$disk bs=1M 2>/dev/null
    echo 3 >/proc/sys/vm/drop_caches
}

# undo what was prepared, for the tests that come then
put_back()
{
    swapoff /dev/zram0
    echo 1 >/sys/block/zram0/reset
    echo $disk >/sys/class/zram-control/hot_remove
    rmdir $small
}

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
