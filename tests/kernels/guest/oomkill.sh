# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys oomkill` on every rung: a kill at the limit of a cgroup, and one because the whole machine has no memory left,
# each with the kernel's own line beside it. The rungs that see the request agree with the kernel on order and flags.
#: programs hog
#: seconds 120

. /tests/tap.sh
plan 33

small=/sys/fs/cgroup/small
mkdir $small && echo 16M >$small/memory.max

# begin RUNG
begin()
{
    rm -f /tmp/said # the one before was ready too
    allium sys oomkill --attach "$1" --stacks kernel --json >/tmp/rows 2>/tmp/said &
    tool=$!
    until grep -qs ready: /tmp/said || ! kill -0 $tool; do usleep 100000; done
    dmesg -c >/tmp/before
}

end()
{
    kill -INT $tool
    wait $tool
    dmesg -c >/tmp/dmesg
    grep '"victim_comm":"hog"' /tmp/rows >/tmp/row
}

# pages NAME: resident pages of a kind, of the row
pages() { echo $(($(sed -n 's/.*"'$1'_bytes":\([0-9]*\).*/\1/p' /tmp/row) / 4096)); }

# the same of the kernel's line, which may lack 32 pages of each CPU, for two CPUs at most
near() { test $(($(pages $1) - $(sed -n "s/.*Killed process.*$1-rss:\([0-9]*\)kB.*/\1/p" /tmp/dmesg) / 4)) -ge 0; }

# request: "order 0xflags" of the kernel's line, and of the row
request() { sed -n 's/.*invoked oom-killer: gfp_mask=0x[0-9a-f]*(\([A-Z_|]*\)), order=\(-*[0-9]*\),.*/\2 \1/p' /tmp/dmesg | tail -n 1; }
of_row() { sed -n 's/.*"order":\(-*[0-9]*\),"gfp":"\([^"]*\)".*/\1 \2/p' /tmp/row; }

allium sys oomkill --duration 100ms >/tmp/rows 2>/tmp/said
holds "it takes the best rung of this kernel" '^allium: ready: oomkill using fentry$' /tmp/said
for rung in fentry kprobe raw_tp; do
    is=exact
    [ $rung = raw_tp ] && is=inferred
    before=$(counter oom_kill)
    begin $rung
    sh -c "echo \$\$ >$small/cgroup.procs && exec hog 64"
    end
    equal "$rung: one row for one kill" "$(wc -l </tmp/row)" $(($(counter oom_kill) - before))
    holds "$rung: its cgroup" '"outcome":"killed".*"scope":"memcg","scope_is":"'$is'","memcg":"/small","limit_of":"memory","limit_bytes":16777216,' /tmp/row
    check "$rung: anonymous memory is that of the kernel's line, or more" near anon
    [ $rung = raw_tp ] || equal "$rung: order and flags of the request" "$(of_row)" "$(request)"
    holds "$rung: nothing was lost" '"lost_events":0,' /tmp/rows
    before=$(counter oom_kill)
    begin $rung
    hog 1024
    equal "$rung: the hog is killed, the machine being full" $? 137
    end
    equal "$rung: one row again" "$(wc -l </tmp/row)" $(($(counter oom_kill) - before))
    holds "$rung: for the whole machine" '"outcome":"killed".*"scope":"global","scope_is":"'$is'","memcg":null' /tmp/row
    check "$rung: anonymous memory again" near anon
    holds "$rung: the largest is the victim" '"largest":\[[^]]*"comm":"hog"' /tmp/row
    [ $rung = raw_tp ] || equal "$rung: order and flags again" "$(of_row)" "$(request)"
done
equal "what was planned has been done" "$number" 32
rmdir $small
