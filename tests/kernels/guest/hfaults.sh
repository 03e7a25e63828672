# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys hfaults` of programs that touch known numbers of huge pages, with all methods at once: columns that methods
# share are equal, and are what /proc/vmstat counts. A pool that runs dry, by the program and by a system call; the huge page
# of zeros; memory asked for in advance; a cgroup without room; khugepaged; mappings that are split and zapped. Then memory
# in small pieces: with each setting of defrag, faults that got a huge page or found none are those of /proc/vmstat.
#: programs huge
#: seconds 1200

. /tests/tap.sh
plan 57

thp=/sys/kernel/mm/transparent_hugepage
pool=/proc/sys/vm/nr_hugepages
proactive=/proc/sys/vm/compaction_proactiveness
group=/sys/fs/cgroup/hfaults
methods="fexit kprobe perf tp"
settings="never defer madvise defer+madvise always"
chosen() { sed 's/.*\[\(.*\)\].*/\1/' $thp/$1; }

was="$(chosen enabled) $(chosen defrag) $(cat $thp/use_zero_page) $(cat $thp/khugepaged/scan_sleep_millisecs) $(cat $proactive)"
put_back()
{
    set -- $was
    echo $1 >$thp/enabled
    echo $2 >$thp/defrag
    echo $3 >$thp/use_zero_page
    echo $4 >$thp/khugepaged/scan_sleep_millisecs
    echo $5 >$proactive
    echo 0 >$pool
}
trap put_back EXIT

# program NAME: one that waits for words; its number is in $NAME
program()
{
    mkfifo /tmp/words.$1
    : >/tmp/answers.$1
    huge </tmp/words.$1 >/tmp/answers.$1 &
    eval $1=$!
    sleep 1000000 >/tmp/words.$1 &
    keepers="$keepers $!"
}
huge_bytes() { awk '/AnonHugePages/ { n += $2 } END { print n * 1024 }' /proc/$1/smaps; }
# tell NAME WORDS: it has done so
tell()
{
    local name=$1
    shift
    local said=$(wc -l </tmp/answers.$name)
    echo "$*" >/tmp/words.$name
    until [ $(wc -l </tmp/answers.$name) -gt $said ]; do usleep 20000; done
}
# count NAME...: of /proc/vmstat, so far
count() { for name in "$@"; do echo -n "$(counter $name) "; done; }
faults() { count thp_fault_alloc thp_fault_fallback thp_fault_fallback_charge; }
# since BEFORE AFTER: of two such texts of three numbers: huge pages, none free, no room
since() { set -- $1 $2; echo "$(($4 - $1)) $(($5 - $2 - $6 + $3)) $(($6 - $3)) "; }
# columns METHOD PID NAME...: of the program's row
columns()
{
    local method=$1 pid=$2
    shift 2
    for name in "$@"; do echo -n "$(sed -n 's/^{"pid":'$pid',.*"'$name'":\([0-9]*\)[,}].*/\1/p' /tmp/rows.$method) "; done
}
transparent() { columns $1 $2 thp no_huge_page cgroup_limit; }

allium sys hfaults --duration 100ms >/tmp/rows 2>/tmp/said
holds "it takes the best attach method on this kernel" '^allium: ready: hfaults using fexit$' /tmp/said

echo madvise >$thp/enabled
echo madvise >$thp/defrag
echo 1 >$thp/use_zero_page
echo 4 >$pool
for method in $methods; do
    allium sys hfaults --attach $method --comm huge --json >/tmp/rows.$method 2>/tmp/said.$method &
    tools="$tools $!"
    until grep -qs ready: /tmp/said.$method || ! kill -0 $!; do usleep 100000; done
done

program first
before=$(faults) mappings=$(counter thp_split_pmd)
for words in "hugetlb 5" "hugetlb_kernel 1" "thp 3" "thp_kernel 2" "zero 3" "populate 2" punch; do tell first $words; done
of_first=$(since "$before" "$(faults)") mappings=$(($(counter thp_split_pmd) - mappings))

program crowded
mkdir $group && echo 6M >$group/memory.max && echo $crowded >$group/cgroup.procs
before=$(faults)
tell crowded thp 5
of_crowded=$(since "$before" "$(faults)")

program collapsed
echo 10 >$thp/khugepaged/scan_sleep_millisecs
tell collapsed small 2
until [ $(huge_bytes $collapsed) = 4194304 ]; do usleep 100000; done
tell collapsed drop
set -- $was
echo $4 >$thp/khugepaged/scan_sleep_millisecs

# The rest of the memory is in pieces of 4 KiB of a program: the kernel can compact them, if it may. By itself it does not.
echo 0 >$proactive
program holder
huge_room() { echo $(($(sed -n 's/MemFree: *\([0-9]*\) kB/\1/p' /proc/meminfo) / 2048)); }
tell holder pieces $(($(huge_room) - 4))
wish=$(($(huge_room) - 4))
for setting in $settings; do
    echo $setting >$thp/defrag
    name=defrag_${setting%+madvise}
    [ $setting = defer+madvise ] && name=defrag_both
    program $name
    before=$(faults)
    tell $name thp $wish
    eval of_$name='$(since "$before" "$(faults)")'
    tell $name drop
done

held=$(huge_bytes $first) # khugepaged may have mended what was split
kill -INT $tools
wait $tools
kill $first $crowded $collapsed $holder $defrag_never $defrag_defer $defrag_madvise $defrag_both $defrag_always $keepers
wait $crowded
rmdir $group

equal "signals and system calls that failed" "$(tr '\n' ' ' </tmp/answers.first)" "1 1 0 0 0 0 0 "
equal "/proc/vmstat: huge pages of the first program, none free, no room" "$of_first" "7 0 0 "
equal "... and split mappings" $mappings 2
set -- $of_crowded
check "some have no room in the cgroup ($3)" [ $3 -gt 0 ]
set -- $of_defrag_never
check "for some there is no free huge page, if the kernel makes none ($2)" [ $2 -gt 0 ]
never=$1
set -- $of_defrag_always
check "if it may, it does ($1, $never)" [ $1 -gt $never ]
for method in $methods; do
    equal "$method: hugetlb, and a pool that ran dry" "$(columns $method $first hugetlb_2m hugetlb_failed)" "4 2 "
    equal "$method: AnonHugePages" "$(columns $method $first anon_huge_bytes)" "$held "
    equal "$method: no room in the cgroup" "$(transparent $method $crowded)" "$of_crowded"
    equal "$method: collapsed by khugepaged" "$(columns $method $collapsed collapsed)" "2 "
    for setting in $settings; do
        name=defrag_${setting%+madvise}
        [ $setting = defer+madvise ] && name=defrag_both
        eval number_of='$'$name want='$'of_$name
        equal "$method: defrag $setting ($want)" "$(transparent $method $number_of)" "$want"
    done
    holds "$method: nothing was lost" '"lost_events":0,"lost_rows":0' /tmp/rows.$method
    case $method in
    fexit | kprobe)
        equal "$method: huge pages, of zeros, asked for" "$(columns $method $first thp zero_page asked)" "7 3 2 "
        equal "$method: split mappings" "$(columns $method $first split_mappings)" "2 "
        equal "$method: zapped" "$(columns $method $collapsed zapped)" "2 "
        ;;
    *)
        equal "$method: huge pages that were touched" "$(columns $method $first thp)" "5 "
        holds "$method: split mappings of the machine" '"machine":"all processes".*"split_mappings":[1-9]' /tmp/rows.$method
        ;;
    esac
done
