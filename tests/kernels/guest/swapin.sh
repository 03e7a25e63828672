# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys swapin` of a program that touches a known number of pages in swap: each is a fault. The pages that were read, and those
# read ahead, are those that /proc/vmstat counts, with kprobes and fentry to the unit. perf tells the faults alone.
#: programs swapper
#: modules lzo-rle zram loop

. /tests/tap.sh
plan 65

pages=300
swapfile=/tmp/swapfile

totals() { echo $(counter pswpin) $(counter swap_ra); }
zeros() { counter swpin_zero; }

# sum NAME: of a column
sum() { sed -n 's/.*"'$1'":\([0-9][0-9]*\).*/\1/p' /tmp/rows | awk '{ n += $1 } END { print n + 0 }'; }

# start NUMBER: a program in a cgroup of its own, that is asked through descriptors; ask NUMBER WORDS: of it, and its answer
start()
{
    rm -f /tmp/to$1 /tmp/from$1
    mkfifo /tmp/to$1 /tmp/from$1
    swapper </tmp/to$1 >/tmp/from$1 31>&- 32>&- & # else it would never see the end of its own input
    eval "program$1=$!; exec 3$1>/tmp/to$1 4$1</tmp/from$1"
    [ -d /sys/fs/cgroup/of$1 ] || mkdir /sys/fs/cgroup/of$1
    eval "echo \$program$1" >/sys/fs/cgroup/of$1/cgroup.procs
}

ask()
{
    local to=3$1 from=4$1
    shift
    eval "echo '$*' >&$to; read -r in_swap major minor <&$from"
}

# swap_out NUMBER: all of its pages, also those of which the swap cache still has a copy, since a disk is slow to write them
swap_out()
{
    ask $1 out
    for i in 1 2 3; do
        grep -q loop /proc/swaps && sleep 1 && echo 4M >/sys/fs/cgroup/of$1/memory.reclaim
    done 2>/dev/null
    ask $1 nothing
}

stop()
{
    eval "exec 3$1>&- 4$1<&-; wait \$program$1"
    rmdir /sys/fs/cgroup/of$1
}

# watch OPTION...: the tool, until it is ready
watch()
{
    rm -f /tmp/said
    allium sys swapin --interval 1h --json "$@" >/tmp/rows 2>/tmp/said &
    tool=$!
    until grep -qs ready: /tmp/said || ! kill -0 $tool; do usleep 100000; done
}

# over: and how far the kernel has counted since `set_out`
set_out()
{
    set -- $(totals) $(zeros)
    read=$1 ahead=$2 zero=${3:-0}
}
over()
{
    set -- $(totals) $(zeros)
    read=$(($1 - read)) ahead=$(($2 - ahead)) zero=$((${3:-0} - zero))
    kill -INT $tool
    wait $tool
}

# swaps METHOD KIND HOW: a program's pages go out, and all are touched
swaps()
{
    start 1
    ask 1 map $pages $2 $3
    swap_out 1
    watch --attach $1
    set_out
    ask 1 touch 0 $pages 1
    over
    stop 1
}

# agrees METHOD WHAT: pages of the rows, and the kernel's counts
agrees()
{
    if [ $1 != perf ]; then
        equal "$1, $2: pages read" "$(sum pages)" $((read + zero))
        equal "$1, $2: ... from devices" $(($(sum device_pages) + $(sum zram_pages))) $read
        equal "$1, $2: ... ahead" "$(sum read_ahead_pages)" $ahead
    fi
    equal "$1, $2: faults that had to read" $(($(sum faults) - $(sum cached_faults))) $((read + zero - ahead))
}

# areas SIZE: zram, and a device that lies on a file
areas()
{
    echo $1 >/sys/block/zram0/disksize
    mkswap /dev/zram0 >/dev/null
    dd if=/dev/zero of=$swapfile bs=1M count=16 2>/dev/null
    losetup /dev/loop0 $swapfile
    mkswap /dev/loop0 $((pages * 4 + 800)) >/dev/null # KiB
}

areas 64M
for method in fentry kprobe perf; do
    swapon /dev/zram0
    swaps $method random private
    equal "$method, zram: each page is a fault" "$(sum faults)" $pages
    agrees $method zram
    [ $method = perf ] || equal "$method, zram: all are of zram" "$(sum zram_pages)" $pages
    swaps $method zero private
    equal "$method, zeros: each page is a fault" "$(sum faults)" $pages
    agrees $method zeros
    [ $method = perf ] || equal "$method, zeros: the kernel knows them since 6.12" "$(sum zero_pages)" $zero
    swaps $method random shared
    agrees $method "shared memory"
    swapoff /dev/zram0
    swapon /dev/loop0
    swaps $method random private
    check "$method, a disk: pages were read, and read ahead ($read, $ahead)" test $read -ge $ahead -a $ahead -gt 0
    if [ $method != perf ]; then # to perf it is as if a page that is being read ahead had been read
        equal "$method, a disk: each page is a fault" "$(sum faults)" $pages
        agrees $method "a disk"
        equal "$method, a disk: nothing is of zram" "$(sum zram_pages)" 0
    fi
    holds "$method: nothing was lost" '"lost_rows":0,.*"ends_missed":0,"replaced":0}' /tmp/rows
    swapoff /dev/loop0
done

# Two areas: the disk has room for the pages of one program, and some of the other's.
swapon /dev/loop0
start 1 && ask 1 map $pages random private && swap_out 1
swapon /dev/zram0
start 2 && ask 2 map $pages random private && swap_out 2
watch --attach kprobe --by device
ask 1 touch 0 $pages 1
ask 2 touch 0 $pages 1
over
faults_of() { sed -n 's/.*"swap":"'$(echo $1 | sed 's/\//./g')'","faults":\([0-9]*\).*/\1/p' /tmp/rows; }
zram=$(faults_of /dev/zram0) disk=$(faults_of /dev/loop0)
check "by device: zram ($zram)" test "${zram:-0}" -gt 0 -a "${zram:-0}" -lt $pages
equal "by device: the others are of the disk" "${disk:-0}" $((2 * pages - ${zram:-0}))
stop 1 && stop 2
swapoff /dev/loop0

# Cgroups with limits of their own: one has room for all its pages in swap, and one for 10.
start 1 && ask 1 map $pages random private && ask 1 out
start 2 && echo 40K >/sys/fs/cgroup/of2/memory.swap.max && ask 2 map $pages random private && ask 2 out
check "its limit lets few pages go ($in_swap)" test "$in_swap" -gt 0 -a "$in_swap" -le 10
tight=$in_swap
watch --attach fentry --by cgroup
ask 1 touch 0 $pages 1
ask 2 touch 0 $pages 1
over
holds "by cgroup: the one with room" '"cgroup":"/of1",.*"faults":'$pages',' /tmp/rows
holds "by cgroup: the one without" '"cgroup":"/of2",.*"faults":'$tight',' /tmp/rows
stop 1 && stop 2

# All methods at once, of the same faults.
start 1 && ask 1 map $pages random private && ask 1 out
for method in fentry kprobe perf; do
    watch --attach $method --pid $program1
    cp /tmp/said /tmp/said.$method
    mv /tmp/rows /tmp/rows.$method
    eval "tool_$method=$tool"
done
ask 1 touch 0 $pages 1
for method in fentry kprobe perf; do
    eval "tool=\$tool_$method"
    kill -INT $tool
    wait $tool
done
columns() { grep '"pid"' /tmp/rows.$1 | grep -o '"'$2'[a-z_]*":[0-9]*'; }
equal "fentry and kprobe have the same columns" "$(for c in faults cached pages zram read; do columns kprobe $c; done)" \
    "$(for c in faults cached pages zram read; do columns fentry $c; done)"
equal "... of each page" "$(columns fentry faults)" '"faults":'$pages
equal "fentry and perf have the same faults" "$(columns perf faults)$(columns perf cached)" "$(columns fentry faults)$(columns fentry cached)"
stop 1

# Pages that no fault waits for.
start 1 && ask 1 map $pages random private && ask 1 out
watch --attach fentry
set_out
swapoff /dev/zram0
over
holds "swapoff reads them, in no fault" '"comm":"swapoff",.*"faults":0,.*"pages":'$pages',.*"no_fault_pages":'$pages, /tmp/rows
equal "... as many as the kernel counts" "$(sum pages)" $read
stop 1

losetup -d /dev/loop0
rm $swapfile
echo 1 >/sys/block/zram0/reset
