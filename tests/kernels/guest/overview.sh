# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys`, the overview, against /proc and free of this kernel: what stands still is the same, what only grows lies between
# two looks. Beside it a program that was killed for lack of memory, and one that hangs in state D with its memory map locked.
#: programs hog stuck toucher
#: modules lzo-rle zram

. /tests/tap.sh
plan 27

small=/sys/fs/cgroup/small
mkdir $small && echo 16M >$small/memory.max
echo 32M >/sys/block/zram0/disksize
mkswap /dev/zram0 >/dev/null && swapon /dev/zram0
mkfifo /tmp/words
sh -c "echo \$\$ >$small/cgroup.procs && exec toucher </tmp/words >/tmp/answers" &
toucher=$!
exec 4>/tmp/words
echo heap 1000 >&4
until [ -s /tmp/answers ]; do usleep 100000; done
kill -STOP $toucher
cat /proc/vmstat >/tmp/before
sh -c "echo \$\$ >$small/cgroup.procs && exec hog 64" &
hog=$!
wait $hog
equal "the hog is killed" $? 137

# value KEY: of the object in /tmp/one
value() { sed -n 's/.*"'$1'":\([0-9]*\)[,}].*/\1/p' /tmp/one; }
# bytes NAME FILE: of a line in kB
bytes() { echo $(($(sed -n "s/^$1:[[:space:]]*\([0-9]*\) kB/\1/p" $2) * 1024)); }
# object WORDS: the one that has these, which holds no other, into /tmp/one
object() { grep -o "{[^{}]*$1[^{}]*}" /tmp/seen | head -n 1 >/tmp/one; }

# still: what nobody changes while the toucher is stopped, but for what the kernel does later, and reads in advance
still() { echo $(cat $small/memory.current) $(bytes RssAnon /proc/$toucher/status) $(free -k | awk '$1 == "Swap:" { print $2, $3, $4 }'); }

# look OPTION...: at a time when all that stands still
look()
{
    cat /proc/$toucher/cmdline >/tmp/cmdline # its page, too, may come from swap
    stood=
    until [ "$stood" = "$(still)" ]; do
        stood=$(still)
        allium sys --json --duration 100ms --top 0 "$@" >/tmp/seen 2>/tmp/said
        code=$?
    done
}

look
equal "it is done" $code 0
holds "nothing is unknown" '"unknown":\[\]' /tmp/seen
object '"swap_total_bytes":'
equal "memory in all" "$(value total_bytes)" "$(bytes MemTotal /proc/meminfo)"
equal "which free says, too" "$(value total_bytes)" $(($(free -k | awk '$1 == "Mem:" { print $2 }') * 1024))
set -- $stood
equal "swap, used swap and free swap are those of free" \
    "$(value swap_total_bytes) $(($(value swap_total_bytes) - $(value swap_free_bytes))) $(value swap_free_bytes)" \
    "$(($3 * 1024)) $(($4 * 1024)) $(($5 * 1024))"
equal "zones with memory, and their low watermarks" \
    "$(grep -o '{[^{}]*"zone":[^{}]*}' /tmp/seen | sed 's/.*"zone":"\([A-Za-z0-9]*\)".*"low_bytes":\([0-9]*\).*/\1 \2/' | tr '\n' ' ')" \
    "$(awk '/^Node/ { zone = $4 } $1 == "low" { low = $2 } $1 == "managed" && $2 { printf "%s %d ", zone, low * 4096 }' /proc/zoneinfo)"
object '"pid":'$toucher',"process"'
equal "a program that stands still: anonymous memory" "$(value anon_bytes)" $2
equal "that of files" "$(value file_bytes)" "$(bytes RssFile /proc/$toucher/status)"
equal "what it has in swap" "$(value swap_bytes)" "$(bytes VmSwap /proc/$toucher/status)"
check "which is most of its thousand pages" test "$(value swap_bytes)" -ge 2048000
object '"version":2,"cgroup":"/small"'
equal "its cgroup: memory" "$(value memory_bytes)" $1
equal "its limit" "$(value limit_bytes)" 16777216
equal "its kills" "$(value oom_kills)" 1
object '"killed":"hog"'
dmesg | grep "Killed process $hog (hog)" >/tmp/killed
equal "who was killed" "$(value pid)" $hog
equal "with how much anonymous memory, by the kernel's line" "$(value anon_bytes)" \
    $(($(sed 's/.*anon-rss:\([0-9]*\)kB.*/\1/' /tmp/killed) * 1024))
holds "at whose limit" '"asked":"hog","limit_of":"cgroup","cgroup":"/small"' /tmp/one
holds "a note says so" '"urgent":true,"text":"[0-9]+ OOM kills? [^"]* hog \(pid '$hog'\), [^"]* /small \(allium sys oomkill\)"' /tmp/seen

# grows KEY COUNTER UNIT [COUNTER]: what was counted since boot
object '"direct_stalls":'
grows()
{
    local least=$(sed -n "s/^$2 //p" /tmp/before) most=$(counter $2) is=$(value $1)
    [ -z "$4" ] || least=$((least + $(sed -n "s/^$4 //p" /tmp/before))) most=$((most + $(counter $4)))
    check "$1: $least <= $is / $3 <= $most" test $((least * $3)) -le "$is" -a "$is" -le $((most * $3))
}
grows faults pgfault 1
grows swapped_out_bytes pswpout 4096 $(grep -o '^swpout_zero' /proc/vmstat)
grows oom_kills oom_kill 1

disk=$(cat /sys/class/zram-control/hot_add)
echo 8M >/sys/block/zram$disk/disksize
mke2fs -b 4096 /dev/zram$disk >/dev/null 2>&1 # as the device has them
mkdir /tmp/frozen
mount -t ext4 /dev/zram$disk /tmp/frozen
dd if=/dev/zero of=/tmp/frozen/page bs=4096 count=1 2>/dev/null
sync
mkfifo /tmp/go
stuck /tmp/frozen/page </tmp/go >/tmp/ready &
stuck=$!
exec 5>/tmp/go
until [ -s /tmp/ready ]; do usleep 100000; done
fsfreeze --freeze /tmp/frozen
echo >&5
until [ "$(cat /proc/$stuck/task/*/stat 2>/dev/null | grep -c ') D ')" = 2 ]; do usleep 100000; done
look --pss
object '"pid":'$stuck',"process"'
holds "a process in state D does not answer, and is shown" '"state":"D",.*"note":"no answer","command":null' /tmp/one
equal "with its anonymous memory" "$(value anon_bytes)" "$(bytes RssAnon /proc/$stuck/status)"
object '"pid":'$toucher',"process"'
holds "nobody waits for it: others are asked" '"note":null,"command":"toucher"' /tmp/one
allium sys --json -p $stuck >/tmp/seen 2>/tmp/said
equal "-p of it comes back" $? 0
holds "and says so" '"asked":"no answer"' /tmp/seen
fsfreeze --unfreeze /tmp/frozen
wait $stuck
equal "it goes on" $? 0
umount /tmp/frozen
echo $disk >/sys/class/zram-control/hot_remove
kill -KILL $toucher
exec 4>&- 5>&-
swapoff /dev/zram0
echo 1 >/sys/block/zram0/reset
wait
rmdir $small
