# SPDX-License-Identifier: BSD-2-Clause
#
# A cgroup runs out of memory while the machine has some: its hog fills the swap it may have, on zram, then is killed.
#: programs hog
#: modules lzo-rle zram

. /tests/tap.sh
plan 6

echo 64M >/sys/block/zram0/disksize
check "a swap device can be made" mkswap /dev/zram0
check "it is taken" swapon /dev/zram0
small=/sys/fs/cgroup/small
mkdir $small && echo 16M >$small/memory.max && echo 16M >$small/memory.swap.max
before=$(counter pswpout)
sh -c "echo \$\$ >$small/cgroup.procs && exec hog 128"
equal "the hog is killed" $? 137
# of the 4096 pages some may have their place there, and not be written yet
check "nearly 16 MiB of it had gone to swap" test $(($(counter pswpout) - before)) -ge 3840
equal "its cgroup counts one kill" "$(sed -n 's/^oom_kill //p' $small/memory.events)" 1
dmesg >/tmp/dmesg
holds "the kernel names the cgroup" 'oom-kill:constraint=CONSTRAINT_MEMCG,.*oom_memcg=/small,.*task=hog,' /tmp/dmesg
swapoff /dev/zram0
echo 1 >/sys/block/zram0/reset
rmdir $small
