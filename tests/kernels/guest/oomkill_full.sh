# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys oomkill` whose table of requests is full, as of others that never ended: a kill is told all the same, what the request
# would have told is inferred, and said to be lost.
#: programs hog
#: copies bpftool

. /tests/tap.sh
plan 10

small=/sys/fs/cgroup/small
mkdir $small && echo 16M >$small/memory.max
eight="0 0 0 0 0 0 0 0"

# kill_under METHOD COMMAND...: of one hog, after the command
kill_under()
{
    method=$1
    shift
    rm -f /tmp/said
    allium sys oomkill --attach $method --stacks none --json >/tmp/rows 2>/tmp/said &
    tool=$!
    until grep -qs ready: /tmp/said || ! kill -0 $tool; do usleep 100000; done
    "$@"
    sh -c "echo \$\$ >$small/cgroup.procs && exec hog 64"
    kill -INT $tool
    wait $tool
}

fill()
{
    requests=$(bpftool map list | sed -n 's/^\([0-9]*\): hash .*name requests .*/\1/p')
    for i in $(seq 64); do
        bpftool map update id $requests key $i 0 0 0 255 0 0 0 value $eight $eight $eight $eight $eight
    done
}

for method in fentry kprobe; do
    kill_under $method :
    holds "$method: a request is seen" '"scope":"memcg","scope_is":"exact","memcg":"/small"' /tmp/rows
    holds "$method: nothing is lost" '"requests_lost":0,' /tmp/rows
    kill_under $method fill
    holds "$method: without room for it the kill is told, as inferred" \
        '"victim_comm":"hog".*"scope":"memcg","scope_is":"inferred","memcg":"/small"' /tmp/rows
    equal "$method: in one row" "$(grep -c victim_comm /tmp/rows)" 1
    holds "$method: that is said" '"requests_lost":1,' /tmp/rows
done
rmdir $small
