# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys swapin` of a program that touches a known number of pages that are in swap: on a device, on zram, in zswap, zero. Each
# page that it touches is a fault, and the pages are those that /proc/vmstat counts, with every method.
#: programs swapper
#: modules lzo-rle zram loop

. /tests/tap.sh
plan 1

totals() { echo $(counter pswpin) $(counter zswpin) $(counter swpin_zero) $(counter swap_ra); }

# sum NAME: of a column
sum() { sed -n 's/.*"'$1'":\([0-9][0-9]*\).*/\1/p' /tmp/rows | awk '{ n += $1 } END { print n + 0 }'; }

# ask WORDS: of the program; its answer
ask()
{
    echo "$*" >&9
    read -r in_swap major minor <&8
}

# swaps METHOD KIND HOW
swaps()
{
    rm -f /tmp/to /tmp/from /tmp/said
    mkfifo /tmp/to /tmp/from
    swapper </tmp/to >/tmp/from &
    program=$!
    exec 9>/tmp/to 8</tmp/from
    ask map 300 $2 $3
    ask out
    allium sys swapin --attach $1 --interval 1h --json --comm swapper >/tmp/rows 2>/tmp/said &
    tool=$!
    until grep -qs ready: /tmp/said || ! kill -0 $tool; do usleep 100000; done
    set -- $(totals)
    before="$*"
    was=$in_swap
    ask touch 0 300 1
    set -- $(totals)
    after="$*"
    kill -INT $tool
    wait $tool
    exec 9>&- 8<&-
    wait $program
    echo "# $was in swap; $before; $after"
    cat /tmp/rows /tmp/said | sed 's/^/# /'
}

echo 64M >/sys/block/zram0/disksize
mkswap /dev/zram0 >/dev/null && swapon /dev/zram0
for method in fentry kprobe tp_btf perf; do
    for kind in random zero; do
        echo "# == $method $kind"
        swaps $method $kind private
    done
    swaps $method random shared
done
check "yes" false
swapoff /dev/zram0
echo 1 >/sys/block/zram0/reset
