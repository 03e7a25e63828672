# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys numamove` of tasks that the scheduler moves to the node of their pages, which cannot be moved, with all methods of
# tracepoints at once: as many moves, swaps and failures as the kernel's own trace has lines. (6.1 does not look at pages that have
# references, so that they pull no task.)
#: kernels 6.12
#: programs moves
#: memory 512M
#: nodes 2
#: cpus 2
#: long

. /tests/tap.sh
methods="tp_btf raw_tp tp"
set -- $methods
plan $((5 * $# + 1))

tracing=/sys/kernel/tracing
mount -t debugfs debugfs /sys/kernel/debug
balancing=/sys/kernel/debug/sched/numa_balancing
echo 100 >$balancing/scan_delay_ms
echo 100 >$balancing/scan_period_min_ms
echo 1 >/proc/sys/kernel/numa_balancing

for method in $methods; do
    allium sys numamove --attach $method --comm moves --interval 1h --json >/tmp/rows.$method 2>/tmp/said.$method &
    echo $! >/tmp/tool.$method
done
for method in $methods; do
    until grep -qs ready: /tmp/said.$method || ! kill -0 $(cat /tmp/tool.$method); do usleep 100000; done
done
for event in move swap stick; do echo 1 >$tracing/events/sched/sched_${event}_numa/enable; done
# pull CPU: begins on that CPU, its pages are on the other node
pull() { taskset $((1 << $1)) sh -c "taskset -p 3 \$\$ >/dev/null; exec moves pulls 200 $((1 - $1)) $1" >/dev/null; }

pull 0
pull 1
pull 0 &
pull 1
wait $!
for event in move swap stick; do echo 0 >$tracing/events/sched/sched_${event}_numa/enable; done
for method in $methods; do
    kill -INT $(cat /tmp/tool.$method)
    wait $(cat /tmp/tool.$method)
done
grep '^ *moves-' $tracing/trace >/tmp/trace

# lines EVENT PATTERN: of the kernel's trace
lines() { grep "sched_$1_numa: " /tmp/trace | grep -c -e "${2:-}"; }

# tasks REASON [PATTERN]: of rows
tasks()
{
    grep "\"reason\":\"$1\"" /tmp/rows.$method | grep -e "${2:-reason}" | sed 's/.*"tasks":\([0-9]*\),.*/\1/' | awk '{ n += $1 } END { print n + 0 }'
}

for method in $methods; do
    equal "$method: tasks that were moved" "$(tasks "task moved")" $(lines move)
    equal "$method: two tasks of each swap" "$(tasks "task swapped")" $((2 * $(lines swap)))
    equal "$method: tasks that found no place" "$(tasks "task stuck")" $(lines stick)
    equal "$method: from node 0, and to it" "$(tasks "task moved" '"from_node":0,"to_node":1') $(tasks "task moved" '"from_node":1,"to_node":0')" \
        "$(lines move src_nid=0) $(lines move src_nid=1)"
    equal "$method: each swap goes both ways" "$(tasks "task swapped" '"from_node":0,"to_node":1')" $(lines swap)
done
check "tasks were moved ($(lines move), $(lines swap) swapped)" test $(($(lines move) + $(lines swap))) -gt 0
