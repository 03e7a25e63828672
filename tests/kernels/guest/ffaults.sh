# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys ffaults` of a program that touches known numbers of pages of several kinds, with every method: rows have the
# numbers, and add up to what `allium sys faults --by file` shows of the same events. A file is replaced while it is
# mapped. Pages are brought in from a ramfs, which has none of a hole, and reads nothing ahead.
#: programs toucher

. /tests/tap.sh
plan 60

mkdir -p /ram /mnt
mount -t tmpfs tmpfs /mnt
mount -t ramfs ramfs /ram
dd if=/dev/zero of=/mnt/plain bs=4096 count=64 2>/dev/null

# row PATH: the row of a file, in /tmp/row; column KEY: of it
row() { grep -F "\"mapped\":\"$1\"" /tmp/rows >/tmp/row; }
column() { sed -n 's/.*"'$1'":"\{0,1\}\([^",}]*\).*/\1/p' /tmp/row; }
# sum FILE KEY: of all rows
sum() { sed -n 's/.*"'$2'":\([0-9]*\).*/\1/p' $1 | awk '{ n += $1 } END { print n + 0 }'; }
# told LINES: waits until the program has answered so many
told() { until [ $(wc -l </tmp/answers) -ge $1 ] || ! kill -0 $pid; do usleep 50000; done; }

for method in fexit perf tp_btf raw_tp tp; do
    mkfifo /tmp/lines
    toucher </tmp/lines >/tmp/answers &
    pid=$!
    exec 3>/tmp/lines
    echo nothing >&3 # it has begun then
    allium sys ffaults --attach $method -p $pid --json >/tmp/rows 2>/tmp/said &
    tool=$!
    allium sys faults --by file --attach $method -p $pid --json >/tmp/others 2>/tmp/also_said &
    other=$!
    for said in /tmp/said /tmp/also_said; do
        until grep -q ready $said || ! kill -0 $tool; do usleep 100000; done
    done
    holds "it attaches by $method" "^allium: ready: ffaults using $method" /tmp/said
    dd if=/dev/zero of=/ram/holes bs=4096 seek=64 count=0 2>/dev/null
    told 1
    printf 'heap 100\nmemfd 110\nshared 120\nsysv 130\nshmem 140 /mnt/shm\n' >&3
    printf 'keep 64 /ram/holes\nat 1\nat 5\nkeep 64 /mnt/plain\nat 1\n' >&3
    told 11
    cp /mnt/plain /mnt/next
    mv -f /mnt/next /mnt/plain
    echo at 40 >&3
    told 12
    kill -INT $tool $other
    wait $tool
    wait $other
    exec 3>&-
    wait $pid
    rm /tmp/lines
    row '[heap]'
    equal "$method: the heap" "$(column kind) $(column faults)" "heap 100"
    row '/memfd:touched (deleted)'
    equal "$method: a memfd" "$(column kind) $(column faults)" "memfd 110"
    row '[shared]'
    equal "$method: shared memory" "$(column kind) $(column faults)" "shared 120"
    row '/SYSV00000000 (deleted)'
    equal "$method: a segment" "$(column kind) $(column faults)" "sysv 130"
    row '/mnt/shm'
    equal "$method: a file in a tmpfs, with its path across mounts" "$(column kind) $(column faults)" "shmem 140"
    equal "$method: its inode" "$(column inode)" "$(ls -i /mnt/shm | awk '{ print $1 }')"
    row '/mnt/plain'
    equal "$method: a file before it is replaced" "$(column kind) $(column faults)" "file 1"
    row '/mnt/plain (replaced)'
    equal "$method: and afterwards" "$(column kind) $(column faults)" "file 1"
    row '/ram/holes'
    case $method in
        fexit | perf) want="2 2 0" ;;
        *) want="2  " ;;
    esac
    equal "$method: pages brought in" "$(column faults) $(column brought_in_pages) $(column read_ahead_pages)" "$want"
    equal "$method: faults by file has as many" "$(sum /tmp/others faults)" "$(sum /tmp/rows faults)"
    holds "$method: nothing was lost" '"lost_events":0,"lost_rows":0' /tmp/rows
    rm /mnt/shm /ram/holes
done
