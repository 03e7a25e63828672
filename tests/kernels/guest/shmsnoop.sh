# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys shmsnoop` of a program that knows its own calls: each is an event, in their order, with every method, and
# the segment's numbers are those of /proc/sysvipc/shm.
#: programs sharer

. /tests/tap.sh
plan 23

# column NAME ROW: its value in a row of JSON
column() { echo "$2" | sed 's/.*"'$1'":"\{0,1\}\([^",}]*\).*/\1/'; }

mkdir -p /dev/shm
mount -t tmpfs tmpfs /dev/shm
for method in tp_btf raw_tp; do
    (echo && sleep 1) | allium sys shmsnoop --attach $method --json -- sh -c 'exec sharer steps here >/tmp/did' \
        2>/tmp/said >/tmp/rows
    check "$method is ready" grep -q "ready: shmsnoop using $method" /tmp/said
    grep '"comm":"sharer"' /tmp/rows | grep -v '/tmp/' >/tmp/events
    sed -n 's/^{"call":"\([a-z_0-9]*\)","error":\([A-Z"a-z]*\).*/\1 \2/p' /tmp/did >/tmp/want
    sed 's/.*"call":"\([a-z_0-9]*\)","error":\([A-Z"a-z]*\).*/\1 \2/' /tmp/events >/tmp/have
    check "$method: each call, with its error" diff /tmp/want /tmp/have
    check "$method: there are many" [ "$(wc -l </tmp/have)" -ge 38 ]
    first=$(grep '"call":"shmget"' /tmp/events | head -n 1)
    made=$(grep '"call":"shmget"' /tmp/did | head -n 1)
    for name in key shmid size_bytes segment_bytes attached creator_pid mode; do
        equal "$method: $name of the first segment" "$(column $name "$first")" "$(column $name "$made")"
    done
    check "$method: what is left" grep -q '"name":"/dev/shm/here.left".*"state":"orphan"' /tmp/rows
    rm /dev/shm/here.left
    # Numbers of processes and segments differ between the runs, and where memory lies.
    sed 's/"\(time_ns\|pid\|tid\|shmid\|creator_pid\|duration_ns\)":[0-9a-z]*,//g
        s/"\(key\|address\|pids\|cgroup\|container\)":[^,]*,//g' /tmp/events >/tmp/$method
done
check "both methods show the same" diff /tmp/tp_btf /tmp/raw_tp
umount /dev/shm
