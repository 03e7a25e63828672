# SPDX-License-Identifier: BSD-2-Clause
#
# `allium bench` at a function of the kernel: a kprobe with each sink, and a BPF program at the function's entry, see each
# call of the helper and of no other process. Nothing remains in tracefs.

. /tests/tap.sh
plan 13

# Another process calls the function all the time: its calls must not count.
sh -c 'while :; do sh -c : ; done' &
other=$!
allium bench --mechanism kprobe,kernel-fentry --sink all --time 1ms --json >/tmp/rows
equal "it ends well" $? 0
kill $other

row() { grep "^{\"mechanism\":\"$1\",\"sink\":\"$2\"" /tmp/rows; }
of() { row $1 $2 | sed "s/.*\"$3\":\([^,}]*\).*/\1/"; }

for row in "kprobe perf-count" "kprobe perf-record" "kprobe ftrace" "kprobe bpf-count" "kprobe bpf-ring" \
    "kernel-fentry bpf-count" "kernel-fentry bpf-ring"; do
    hits=$(of $row hits) lost=$(of $row lost) expected=$(of $row expected)
    check "$row has each call: $expected, lost: $lost" test "$expected" -gt 100 -a $((hits + lost)) = "$expected"
done
for row in "kprobe bpf-empty" "kernel-fentry bpf-empty"; do

    check "$row has a time" test "$(of $row median_ns)" != null
done
equal "fentry goes with BPF alone" "$(grep -c '^{"mechanism":"kernel-fentry","sink":"bpf-' /tmp/rows)" 3
mkdir -p /tmp/tracefs
mount -t tracefs tracefs /tmp/tracefs
equal "no event remains" "$(grep -c allium /tmp/tracefs/kprobe_events)" 0
equal "... and no instance" "$(ls /tmp/tracefs/instances)" ""
umount /tmp/tracefs
