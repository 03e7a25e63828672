# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys numamove` on two nodes, with all methods at once: known numbers of pages are moved by move_pages(2) and mbind(2), by NUMA
# balancing, because a cpuset changes, and by compaction. The sums are those of /proc/vmstat. Functions of the kernel tell the nodes, the
# owners, and which pages were pinned; tracepoints tell the owner only where a system call or a page fault does, and call nobody the owner
# else.
#: programs moves
#: memory 1024M
#: nodes 2
#: parameters movablecore=512M

. /tests/tap.sh
best=fentry
methods="fentry kprobe tp_btf raw_tp tp"
if uname -r | grep -q '^6\.1\.'; then # there no program of fentry can be at a function of seven arguments
    best=kprobe methods="kprobe tp_btf raw_tp tp"
fi
set -- $methods
plan $((1 + 16 * $# + 3))

box=/sys/fs/cgroup/box
mount -t debugfs debugfs /sys/kernel/debug
balancing=/sys/kernel/debug/sched/numa_balancing
echo 0 >/proc/sys/kernel/numa_balancing
mkfifo /tmp/go
scattered=2000 node=0

counters() { echo $(counter pgmigrate_success) $(counter pgmigrate_fail); }

# begin: all are ready, and what the kernel has counted so far
begin()
{
    for method in $methods; do
        rm -f /tmp/said.$method # the one before was ready too
        allium sys numamove --attach $method --interval 1h --json >/tmp/rows.$method 2>/tmp/said.$method &
        echo $! >/tmp/tool.$method
    done
    for method in $methods; do
        until grep -qs ready: /tmp/said.$method || ! kill -0 $(cat /tmp/tool.$method); do usleep 100000; done
    done
    set -- $(counters)
    moved=$1 failed=$2
}

# end: and how far the kernel has counted, in `counted`
end()
{
    set -- $(counters)
    counted="$(($1 - moved)) $(($2 - failed))"
    for method in $methods; do
        kill -INT $(cat /tmp/tool.$method)
        wait $(cat /tmp/tool.$method)
    done
}

# sum KEY [PATTERN]: of rows
sum() { grep -e "${2:-reason}" /tmp/rows.$method | sed -n 's/.*"'$1'":\([0-9][0-9]*\)[,}].*/\1/p' | awk '{ n += $1 } END { print n + 0 }'; }

# values PATTERN KEY...: of the one row
values()
{
    grep -e "$1" /tmp/rows.$method >/tmp/row
    shift
    for key in "$@"; do sed 's/.*"'$key'":\([^,}]*\).*/\1/' /tmp/row; done | tr -d '"' | paste -s -d ' '
}

# tells_nodes: does the method?
tells_nodes() { [ $method = fentry -o $method = kprobe ]; }

# or_null WORDS: what a method shows that tells nodes; others do not know
or_null() { tells_nodes && echo "$1" || echo "$1" | sed 's/[^ ][^ ]*/null/g'; }

# keep COMMAND...: moves scattered, which waits, begun by the command
keep()
{
    "$@" moves scattered $scattered $node $((1 - node)) </tmp/go >/tmp/kept &
    exec 4>/tmp/go
    until grep -q . /tmp/kept; do usleep 100000; done
    read -r kept pages </tmp/kept
}

release()
{
    exec 4>&-
    wait $!
}

allium sys numamove --duration 100ms >/tmp/rows 2>/tmp/said
holds "it takes the best attach method on this kernel" "^allium: ready: numamove using $best$" /tmp/said

begin
for how in self child pinned; do moves $how 64 0 1 >/tmp/$how; done
moves mbind 50 1 0 >/tmp/mbind
end
for method in $methods; do
    read -r pid there </tmp/self
    equal "$method: pages of the caller" "$(values '"pid":'$pid, reason owner_pid owner calls pages failed_pages) $there" "syscall $pid moves 1 64 0 64"
    nodes="$(values '"pid":'$pid, from_node to_node)"
    read -r pid there </tmp/pinned
    equal "$method: pages that a pipe refers to" "$(values '"pid":'$pid, reason owner_pid calls pages failed_pages) $there" "syscall $pid 1 56 8 56"
    if tells_nodes; then
        equal "$method: which are pinned" "$(values '"pid":'$pid, pinned_pages writeback_pages other_failed_pages no_memory)" "8 0 0 0"
    else
        holds "$method: it says that it cannot show why" 'ready: .*, which cannot show .*why pages fail' /tmp/said.$method
    fi
    read -r pid there </tmp/mbind
    equal "$method: pages that a policy moves" "$(values '"pid":'$pid, reason owner_pid pages failed_pages) $there" "mbind $pid 50 0 50"
    equal "$method: nodes" "$nodes $(values '"pid":'$pid, from_node to_node)" "$(or_null "0 1 1 0")"
    # The child is asked for by the number of a thread, and has ended before the rows are made: who cannot ask the kernel does not know.
    read -r pid there </tmp/child
    case $method in
    fentry | kprobe) owner=$pid ;;
    tp_btf) owner=$pid && [ $best = kprobe ] && owner=null ;;
    *) owner=null ;;
    esac
    other=$(grep '"syscall"' /tmp/rows.$method | grep -v '"pid":'$(cut -d ' ' -f 1 /tmp/self), | grep -v '"pid":'$(cut -d ' ' -f 1 /tmp/pinned), |
        sed 's/.*"owner_pid":\([^,]*\),.*"pages":\([^,]*\),.*/\1 \2/')
    equal "$method: pages of another process" "$other $there" "$owner 64 64"
    equal "$method: all pages, and all that fail" "$(sum pages) $(sum failed_pages)" "$counted"
    holds "$method: nothing was lost" '"lost_events":0,"lost_rows":0,.*"untimed":0,"under_way":0' /tmp/rows.$method
done

echo 100 >$balancing/scan_delay_ms
echo 100 >$balancing/scan_period_min_ms
echo 1 >/proc/sys/kernel/numa_balancing
balanced=$(counter numa_pages_migrated)
begin
moves touched 500 1 0 >/tmp/touched
end
echo 0 >/proc/sys/kernel/numa_balancing
balanced=$(($(counter numa_pages_migrated) - balanced))
read -r pid there </tmp/touched
for method in $methods; do
    equal "$method: NUMA balancing moves pages of the process that touches them" \
        "$(values '"pid":'$pid, reason owner_pid owner pages from_node to_node) $there" "NUMA balancing $pid moves 500 $(or_null "1 0") 500"
    equal "$method: as the kernel counts them" "$(sum pages '"NUMA balancing"')" $balanced
done

mkdir $box
echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
echo 0 >$box/cpuset.mems
keep sh -c "echo \$\$ >$box/cgroup.procs && exec \"\$@\"" sh
begin
echo 1 >$box/cpuset.mems
until grep -q "N1=1000 " /proc/$kept/numa_maps; do usleep 100000; done
sleep 1 # the kernel thread is through
end
release
for method in $methods; do
    equal "$method: a kernel thread that moves a cpuset's pages is not their owner" "$(grep -v '"pages":0,' /tmp/rows.$method |
        sed -n 's/.*"reason":"cpuset",.*"comm":"\([a-z]*\).*"owner":\([^,]*\),.*/\1 \2/p' | sort -u | grep -v '"(shared)"' | paste -s -d ' ')" "kworker $(tells_nodes && echo '"moves"' || echo null)"
    equal "$method: all pages of the cpuset, and all that fail" "$(sum pages) $(sum failed_pages)" "$counted"
done
rmdir $box

keep env
begin
echo 1 >/proc/sys/vm/compact_memory
end
release
for method in $methods; do
    equal "$method: all pages of compaction, and all that fail" "$(sum pages '"compaction"') $(sum failed_pages '"compaction"')" "$counted"
done
check "compaction moved pages ($counted)" test "${counted% *}" -gt 0

# kcompactd is told to work
scattered=40000
keep env
begin
before=$(counter compact_daemon_migrate_scanned)
echo 90 >/proc/sys/vm/compaction_proactiveness
for wait in 1 2 3 4 5 6 7 8 9 10; do [ "$(counter compact_daemon_migrate_scanned)" != $before ] || sleep 1; done
sleep 2
end
for method in $methods; do
    equal "$method: kcompactd moves pages, and none of its own" "$(grep -v '"pages":0,' /tmp/rows.$method | sed -n 's/.*"comm":"kcompactd0".*"owner":\([^,]*\),.*/\1/p' |
        sort -u | grep -e kcompactd -e null -e moves | paste -s -d ' ')" "$(tells_nodes && echo '"moves" null' || echo null)"
done
check "kcompactd moved pages ($counted)" test "${counted% *}" -gt 0
release

# A part of the memory of node 1 is taken away, which has movable pages.
node=1
keep env
begin
gone=
for tries in $(seq 20); do # a page that is in use somewhere keeps its block
    for block in /sys/devices/system/node/node1/memory[0-9]*; do
        [ -z "$gone" ] && grep -q Movable $block/valid_zones && echo offline >$block/state 2>/dev/null && gone=$block
    done
    [ -n "$gone" ] || sleep 1
done
end
[ -n "$gone" ] && echo online_movable >$gone/state
release
for method in $methods; do
    equal "$method: pages that memory hotplug moves" "$(sum pages '"memory hotplug"') $(sum failed_pages '"memory hotplug"')" "$counted"
    equal "$method: nothing is under way" "$(sed -n 's/.*"under_way":\([0-9]*\).*/\1/p' /tmp/rows.$method)" 0
done
check "a block of memory was taken away ($gone, $counted)" test -n "$gone" -a "${counted% *}" -gt 0
