# SPDX-License-Identifier: BSD-2-Clause
#
. /tests/tap.sh
plan 1
#: programs moves
#: memory 512M
#: nodes 2
echo 0 >/proc/sys/kernel/numa_balancing
for m in fentry kprobe tp_btf ; do
allium sys numamove --attach $m --interval 1h --json -- sh -c 'moves self 100 0 1; moves child 100 0 1; moves mbind 50 1 0; moves pinned 64 0 1'
done
mkfifo /tmp/fifo
moves scattered 30000 0 0 <>/tmp/fifo &
sleep 1
for m in fentry kprobe; do
allium sys numamove --attach $m --interval 1h  -- sh -c 'echo 1 >/proc/sys/vm/compact_memory'
done
mount -t debugfs none /sys/kernel/debug
echo 100 > /sys/kernel/debug/sched/numa_balancing/scan_delay_ms
echo 100 > /sys/kernel/debug/sched/numa_balancing/scan_period_min_ms
echo 1 >/proc/sys/kernel/numa_balancing
allium sys numamove --attach kprobe --interval 1h --json -- sh -c 'moves touched 500 1 0'
grep numa /proc/vmstat
check "ok" false
