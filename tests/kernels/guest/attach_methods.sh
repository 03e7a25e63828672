# SPDX-License-Identifier: BSD-2-Clause
#
# All methods of a tool at once: columns that they share are the same for the same events. (oomkill.sh has those of oomkill.)
#: programs asks hog toucher
#: modules lzo-rle zram
#: long

. /tests/tap.sh
. /tests/reclaim.sh
plan 33

# at_once TOOL "METHODS" COMMAND...: a tool with each method follows what the command does; rows in /tmp/rows.METHOD
at_once()
{
    what=$1 all=$2
    shift 2
    for method in $all; do
        rm -f /tmp/said.$method
        allium sys $what --attach $method $options --json >/tmp/rows.$method 2>/tmp/said.$method &
        echo $! >/tmp/tool.$method
    done
    for method in $all; do
        until grep -qs ready: /tmp/said.$method || ! kill -0 $(cat /tmp/tool.$method); do usleep 100000; done
    done
    "$@"
    for method in $all; do
        kill -INT $(cat /tmp/tool.$method)
        wait $(cat /tmp/tool.$method)
    done
}

# columns PATTERN KEY...: of the rows that match, sorted: their order is no one's
columns()
{
    grep -E "$1" /tmp/rows.$method >/tmp/rows
    shift
    while read -r row; do
        for key in "$@"; do
            echo "$row" | sed 's/.*"'$key'":\("[^"]*"\|[^,}]*\).*/'$key'=\1/' | tr '\n' ' '
        done
        echo
    done </tmp/rows | sort
}

# same PATTERN KEY...: of all methods, and there is something
same()
{
    first=
    for method in $all; do
        have=$(columns "$@")
        [ -n "$first" ] || first=$have
        equal "$what, $method: columns are those of the others" "$have" "$first"
        holds "$what, $method: nothing was lost" '"lost_events":0,"lost_rows":0' /tmp/rows.$method
    done
    check "$what: there are some" [ -n "$first" ]
}

options="--comm asks"
at_once kmem "raw_tp tp" asks 3000
# not frees: those of an interrupt are in its name, too, and one that interrupts our program is missed
same '"allocations":[0-9]{4}' call_site requested_bytes allocated_bytes allocations

options="--comm asks --interval 1h"
at_once slabratetop "raw_tp tp" asks 3000
same '"allocations":[0-9]{4}' cache allocations

options="--comm hog --by type"
at_once kpages "raw_tp tp" hog 24
same '"migrate_type":"movable"' migrate_type allocated_bytes allocations failures

mkfifo /tmp/toucher.do
: >/tmp/touched # the toucher makes it a moment later, and its lines are counted before
toucher </tmp/toucher.do >/tmp/touched &
toucher=$!
exec 4>/tmp/toucher.do
answers() { wc -l </tmp/touched; }
touch_all()
{
    for line in "nothing" "heap 300" "shared 200" "zero 150" "stack 50" "kernel 70"; do
        told=$(answers)
        echo "$line" >&4
        until [ "$(answers)" -gt "$told" ]; do usleep 20000; done
    done
}
touch_all
options="-p $toucher"
at_once faults "fexit perf tp_btf raw_tp tp" touch_all
same '"comm":"toucher"' pid faults user kernel read write execute heap stack anonymous file shared
exec 4>&-
wait $toucher

enabled=/sys/kernel/mm/lru_gen/enabled
was=$(cat $enabled)
echo n >$enabled # 6.1 tells nothing of the other LRU
prepare 32 18
options="--comm hog"
at_once drsnoop "tp_btf raw_tp tp" within hog 18
same '"comm":"hog"' tid reclaim reclaimed_pages scanned_pages order gfp memcg limit_of memcg_limit_bytes
put_back
echo $was >$enabled
