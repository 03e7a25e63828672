# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys oomkill` with all methods at once: a kill at the limit of a cgroup, and one because the whole machine has no memory left,
# each with the kernel's own line beside it. Columns that methods share are the same; those that see the request agree with the
# kernel on order and flags.
#: programs hog

. /tests/tap.sh
methods="fentry kprobe raw_tp"
uname -r | grep -q '^6\.1\.' || methods="$methods tp_btf" # there mark_victim has a number for it, and no task
set -- $methods
plan $((7 + 12 * $#))

small=/sys/fs/cgroup/small
mkdir $small && echo 16M >$small/memory.max

# begin: all are ready, and the kernel's log is empty
begin()
{
    for method in $methods; do
        rm -f /tmp/said.$method # the one before was ready too
        allium sys oomkill --attach $method --stacks kernel --json >/tmp/rows.$method 2>/tmp/said.$method &
        echo $! >/tmp/tool.$method
    done
    for method in $methods; do
        until grep -qs ready: /tmp/said.$method || ! kill -0 $(cat /tmp/tool.$method); do usleep 100000; done
    done
    before=$(counter oom_kill)
    dmesg -c >/tmp/before
}

end()
{
    killed=$(($(counter oom_kill) - before))
    for method in $methods; do
        kill -INT $(cat /tmp/tool.$method)
        wait $(cat /tmp/tool.$method)
        equal "$method: it ends well" $? 0
        grep '"victim_comm":"hog"' /tmp/rows.$method >/tmp/row.$method
    done
    dmesg -c >/tmp/dmesg
}

# pages NAME: resident pages of a kind, of the row
pages() { echo $(($(sed -n 's/.*"'$1'_bytes":\([0-9]*\).*/\1/p' /tmp/row.$method) / 4096)); }

# the same of the kernel's line, which may lack 32 pages of each CPU, for two CPUs at most
near() { test $(($(pages $1) - $(sed -n "s/.*Killed process.*$1-rss:\([0-9]*\)kB.*/\1/p" /tmp/dmesg) / 4)) -ge 0; }

# request: "order 0xflags" of the kernel's line, and of the row
request() { sed -n 's/.*invoked oom-killer: gfp_mask=0x[0-9a-f]*(\([A-Z_|]*\)), order=\(-*[0-9]*\),.*/\2 \1/p' /tmp/dmesg | tail -n 1; }
of_row() { sed -n 's/.*"order":\(-*[0-9]*\),"gfp":"\([^"]*\)".*/\1 \2/p' /tmp/row.$method; }

# shared KEY...: columns of the row
shared()
{
    for key in "$@"; do
        sed 's/"largest":.*//; s/.*"'$key'":\([^,]*\),.*/'$key'=\1/' /tmp/row.$method
    done
}

# same KEY...: in rows of all methods
same()
{
    method=fentry
    first=$(shared "$@")
    for method in $methods; do
        equal "$method: shared columns are those of the others" "$(shared "$@")" "$first"
    done
}

# knows_request: of those that see it
knows_request()
{
    case $method in
    fentry | kprobe) equal "$method: order and flags of the request" "$(of_row)" "$(request)" ;;
    *) holds "$method: it says that it cannot show the request" 'ready: .*, which cannot show ' /tmp/said.$method ;;
    esac
}

is() { case $method in fentry | kprobe) echo exact ;; *) echo inferred ;; esac; }

allium sys oomkill --duration 100ms >/tmp/rows 2>/tmp/said
holds "it takes the best attach method on this kernel" '^allium: ready: oomkill using fentry$' /tmp/said
begin
sh -c "echo \$\$ >$small/cgroup.procs && exec hog 64"
equal "the hog is killed at its cgroup's limit" $? 137
end
equal "there was one kill" $killed 1
for method in $methods; do
    equal "$method: one row for it" "$(wc -l </tmp/row.$method)" 1
    holds "$method: its cgroup" '"outcome":"killed".*"scope":"memcg","scope_is":"'$(is)'","memcg":"/small","limit_of":"memory","limit_bytes":16777216,' /tmp/row.$method
    check "$method: anonymous memory is that of the kernel's line, or more" near anon
    holds "$method: nothing was lost" '"lost_events":0,' /tmp/rows.$method
    knows_request
done
same outcome pid tid comm uid victim_comm victim_pid victim_uid oom_score_adj anon_bytes file_bytes shmem_bytes swap_bytes page_tables_bytes total_vm_bytes
methods_all=$methods methods="fentry kprobe"
same memcg limit_of limit_bytes usage_bytes scope_total_bytes order gfp # of those that see the request
methods=$methods_all
begin
hog 1024
equal "the hog is killed, the machine being full" $? 137
end
for method in $methods; do
    equal "$method: one row for each kill" "$(wc -l </tmp/row.$method)" $killed
    holds "$method: for the whole machine" '"outcome":"killed".*"scope":"global","scope_is":"'$(is)'","memcg":null' /tmp/row.$method
    check "$method: anonymous memory again" near anon
    holds "$method: the largest is the victim" '"largest":\[[^]]*"comm":"hog"' /tmp/row.$method
done
equal "what was planned has been done" $number $((6 + 12 * $#))
rmdir $small
