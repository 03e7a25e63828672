# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys oomkill` on all rungs at once: a kill at the limit of a cgroup, and one because the whole machine has no memory left,
# each with the kernel's own line beside it. Columns that rungs share are the same; those that see the request agree with the
# kernel on order and flags.
#: programs hog

. /tests/tap.sh
rungs="fentry kprobe raw_tp"
uname -r | grep -q '^6\.1\.' || rungs="$rungs tp_btf" # there mark_victim has a number for it, and no task
set -- $rungs
plan $((7 + 12 * $#))

small=/sys/fs/cgroup/small
mkdir $small && echo 16M >$small/memory.max

# begin: all are ready, and the kernel's log is empty
begin()
{
    for rung in $rungs; do
        rm -f /tmp/said.$rung # the one before was ready too
        allium sys oomkill --attach $rung --stacks kernel --json >/tmp/rows.$rung 2>/tmp/said.$rung &
        echo $! >/tmp/tool.$rung
    done
    for rung in $rungs; do
        until grep -qs ready: /tmp/said.$rung || ! kill -0 $(cat /tmp/tool.$rung); do usleep 100000; done
    done
    before=$(counter oom_kill)
    dmesg -c >/tmp/before
}

end()
{
    killed=$(($(counter oom_kill) - before))
    for rung in $rungs; do
        kill -INT $(cat /tmp/tool.$rung)
        wait $(cat /tmp/tool.$rung)
        equal "$rung: it ends well" $? 0
        grep '"victim_comm":"hog"' /tmp/rows.$rung >/tmp/row.$rung
    done
    dmesg -c >/tmp/dmesg
}

# pages NAME: resident pages of a kind, of the row
pages() { echo $(($(sed -n 's/.*"'$1'_bytes":\([0-9]*\).*/\1/p' /tmp/row.$rung) / 4096)); }

# the same of the kernel's line, which may lack 32 pages of each CPU, for two CPUs at most
near() { test $(($(pages $1) - $(sed -n "s/.*Killed process.*$1-rss:\([0-9]*\)kB.*/\1/p" /tmp/dmesg) / 4)) -ge 0; }

# request: "order 0xflags" of the kernel's line, and of the row
request() { sed -n 's/.*invoked oom-killer: gfp_mask=0x[0-9a-f]*(\([A-Z_|]*\)), order=\(-*[0-9]*\),.*/\2 \1/p' /tmp/dmesg | tail -n 1; }
of_row() { sed -n 's/.*"order":\(-*[0-9]*\),"gfp":"\([^"]*\)".*/\1 \2/p' /tmp/row.$rung; }

# shared KEY...: columns of the row
shared()
{
    for key in "$@"; do
        sed 's/"largest":.*//; s/.*"'$key'":\([^,]*\),.*/'$key'=\1/' /tmp/row.$rung
    done
}

# same KEY...: in rows of all rungs
same()
{
    rung=fentry
    first=$(shared "$@")
    for rung in $rungs; do
        equal "$rung: shared columns are those of the others" "$(shared "$@")" "$first"
    done
}

# knows_request: of those that see it
knows_request()
{
    case $rung in
    fentry | kprobe) equal "$rung: order and flags of the request" "$(of_row)" "$(request)" ;;
    *) holds "$rung: it says that it cannot show the request" 'ready: .*, which cannot show ' /tmp/said.$rung ;;
    esac
}

is() { case $rung in fentry | kprobe) echo exact ;; *) echo inferred ;; esac; }

allium sys oomkill --duration 100ms >/tmp/rows 2>/tmp/said
holds "it takes the best rung of this kernel" '^allium: ready: oomkill using fentry$' /tmp/said
begin
sh -c "echo \$\$ >$small/cgroup.procs && exec hog 64"
equal "the hog is killed at its cgroup's limit" $? 137
end
equal "there was one kill" $killed 1
for rung in $rungs; do
    equal "$rung: one row for it" "$(wc -l </tmp/row.$rung)" 1
    holds "$rung: its cgroup" '"outcome":"killed".*"scope":"memcg","scope_is":"'$(is)'","memcg":"/small","limit_of":"memory","limit_bytes":16777216,' /tmp/row.$rung
    check "$rung: anonymous memory is that of the kernel's line, or more" near anon
    holds "$rung: nothing was lost" '"lost_events":0,' /tmp/rows.$rung
    knows_request
done
same outcome pid tid comm uid victim_comm victim_pid victim_uid oom_score_adj anon_bytes file_bytes shmem_bytes swap_bytes page_tables_bytes total_vm_bytes
rungs_all=$rungs rungs="fentry kprobe"
same memcg limit_of limit_bytes usage_bytes scope_total_bytes order gfp # of those that see the request
rungs=$rungs_all
begin
hog 1024
equal "the hog is killed, the machine being full" $? 137
end
for rung in $rungs; do
    equal "$rung: one row for each kill" "$(wc -l </tmp/row.$rung)" $killed
    holds "$rung: for the whole machine" '"outcome":"killed".*"scope":"global","scope_is":"'$(is)'","memcg":null' /tmp/row.$rung
    check "$rung: anonymous memory again" near anon
    holds "$rung: the largest is the victim" '"largest":\[[^]]*"comm":"hog"' /tmp/row.$rung
done
equal "what was planned has been done" $number $((6 + 12 * $#))
rmdir $small
