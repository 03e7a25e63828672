# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys hfaults` of a program that touches known numbers of huge pages, with all methods at once: columns that two
# methods share are equal, and those of the kernel's functions are what /proc/vmstat counts. A pool that runs dry, by the
# program and by a system call; the huge page of zeros; memory asked for in advance; a cgroup without room; khugepaged;
# mappings that are split and zapped. Then memory in small pieces: with each setting of defrag, faults that got a huge page
# or found none are those of /proc/vmstat.
#: programs huge
#: seconds 900

. /tests/tap.sh
plan 48

thp=/sys/kernel/mm/transparent_hugepage
pool=/proc/sys/vm/nr_hugepages
sleeps=$(cat $thp/khugepaged/scan_sleep_millisecs)
defrag=$(sed 's/.*\[\(.*\)\].*/\1/' $thp/defrag)
enabled=$(sed 's/.*\[\(.*\)\].*/\1/' $thp/enabled)
put_back()
{
    echo $sleeps >$thp/khugepaged/scan_sleep_millisecs
    echo $defrag >$thp/defrag
    echo $enabled >$thp/enabled
    echo 0 >$pool
}
trap put_back EXIT
echo madvise >$thp/enabled

methods="fexit kprobe perf tp"
# begin METHOD...: a program that waits for words (fd 3), and each method's tool, ready
begin()
{
    tools=
    for method in "$@"; do
        allium sys hfaults --attach $method --by process --comm huge --json >/tmp/rows.$method 2>/tmp/said.$method &
        tools="$tools $!"
        until grep -qs ready: /tmp/said.$method || ! kill -0 $!; do usleep 100000; done
    done
    rm -f /tmp/words /tmp/answers && mkfifo /tmp/words
    huge </tmp/words >/tmp/answers &
    program=$!
    exec 3>/tmp/words
    said=0
}
# tell WORDS: it has done so
tell()
{
    echo "$*" >&3
    said=$((said + 1))
    until [ $(wc -l </tmp/answers) -ge $said ]; do usleep 20000; done
}
end()
{
    kill -INT $tools
    wait $tools
    exec 3>&-
    wait $program
}
# column NAME METHOD: of the program's row
column() { sed -n 's/^{"pid":'$program',.*"'$1'":\([0-9]*\)[,}].*/\1/p' /tmp/rows.$2; }
columns() { method=$1; shift; for name in "$@"; do echo -n "$(column $name $method) "; done; }
counters() { for name in "$@"; do echo -n "$(counter $name) "; done; }
since() { set -- $1 $2; echo $(($2 - $1)); }

allium sys hfaults --duration 100ms >/tmp/rows 2>/tmp/said
holds "it takes the best attach method on this kernel" '^allium: ready: hfaults using fexit$' /tmp/said

echo 4 >$pool
pages=$(counter thp_split_page) mappings=$(counter thp_split_pmd) alloc=$(counter thp_fault_alloc)
begin $methods
tell hugetlb 5
tell hugetlb_kernel 1
tell thp 3
tell thp_kernel 2
tell zero 3
tell populate 2
tell punch
grep -E "^[0-9]" /tmp/answers | tr '\n' ' ' >/tmp/answered
held=$(awk '/AnonHugePages/ { n += $2 } END { print n * 1024 }' /proc/$program/smaps)
end
equal "signals and system calls that failed" "$(cat /tmp/answered)" "1 1 0 0 0 0 0 "
for method in $methods; do
    equal "$method: hugetlb, a pool that ran dry" "$(columns $method hugetlb_2m hugetlb_failed)" "4 2 "
    equal "$method: scanned, no page, no room" "$(columns $method no_huge_page cgroup_limit)" "0 0 "
    holds "$method: nothing was lost" '"lost_events":0,"lost_rows":0' /tmp/rows.$method
    equal "$method: AnonHugePages" "$(column anon_huge_bytes $method)" $held
done
for method in fexit kprobe; do
    equal "$method: huge pages, asked for in advance" "$(columns $method thp zero_page asked)" "7 3 2 "
    equal "$method: of the split mappings" "$(columns $method split_mappings)" "2 "
done
for method in perf tp; do
    equal "$method: huge pages that were touched" "$(columns $method thp)" "5 "
done
equal "huge pages are those of /proc/vmstat" $(since $alloc $(counter thp_fault_alloc)) 7
equal "... and so are split mappings" $(since $mappings $(counter thp_split_pmd)) 2

# Each fault that the cgroup has no room for.
group=/sys/fs/cgroup/hfaults
mkdir $group && echo 6M >$group/memory.max
before=$(counters thp_fault_alloc thp_fault_fallback_charge)
begin $methods
echo $program >$group/cgroup.procs
tell thp 5
end
rmdir $group
set -- $before $(counters thp_fault_alloc thp_fault_fallback_charge)
check "some of them have no room ($(($4 - $2)))" [ $(($4 - $2)) -gt 0 ]
for method in $methods; do
    equal "$method: no room in the cgroup" "$(columns $method thp no_huge_page cgroup_limit)" "$(($3 - $1)) 0 $(($4 - $2)) "
done

# khugepaged
echo 10 >$thp/khugepaged/scan_sleep_millisecs
begin $methods
collapsed=$(cat $thp/khugepaged/pages_collapsed)
tell small 2
until [ $(cat $thp/khugepaged/pages_collapsed) -ge $((collapsed + 2)) ]; do usleep 100000; done
tell drop
end
echo $sleeps >$thp/khugepaged/scan_sleep_millisecs
for method in $methods; do
    equal "$method: collapsed by khugepaged" "$(columns $method collapsed)" "2 "
done
equal "zapped" "$(column zapped fexit) $(column zapped kprobe)" "2 2"

# The rest of the memory is in pieces of 4 KiB, of a program: the kernel can compact them, if it may.
rm -f /tmp/pieces && mkfifo /tmp/pieces
huge </tmp/pieces >/tmp/in_pieces &
holder=$!
exec 4>/tmp/pieces
echo pieces $(($(sed -n 's/MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 2048 - 8)) >&4
until [ -s /tmp/in_pieces ]; do usleep 100000; done
for setting in never defer madvise defer+madvise always; do
    echo $setting >$thp/defrag
    before=$(counters thp_fault_alloc thp_fault_fallback thp_fault_fallback_charge)
    begin fexit perf
    tell thp 6
    end
    set -- $before $(counters thp_fault_alloc thp_fault_fallback thp_fault_fallback_charge)
    want="$(($4 - $1)) $(($5 - $2 - $6 + $3)) $(($6 - $3)) "
    equal "defrag $setting, fexit: huge pages, none free, no room ($want)" "$(columns fexit thp no_huge_page cgroup_limit)" "$want"
    equal "defrag $setting, perf: the same" "$(columns perf thp no_huge_page cgroup_limit)" "$want"
    [ $setting = never ] && check "there was none free for some" [ $(column no_huge_page fexit) -gt 0 ]
    [ $setting = always ] && check "the kernel has made some" [ $(column thp fexit) -gt 0 ]
done
exec 4>&-
wait $holder
