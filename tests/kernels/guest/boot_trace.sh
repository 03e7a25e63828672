# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys import --boot` of a boot with the parameters that `allium doctor --boot` prints: it refuses while somebody
# else uses the buffers, reads them once, and tells what is older than the trace.
#: memory 512M
#: parameters trace_event=kmem:kmalloc,kmem:kfree,kmem:kmem_cache_alloc,kmem:kmem_cache_free,task:task_rename,task:task_newtask trace_buf_size=32M trace_clock=global trace_options=nooverwrite

. /tests/tap.sh
plan 22
cd /sys/kernel/tracing

# value QUERY: of the recording
value() { allium sql /tmp/boot.allium "$1" --json | sed -n 's/^{"v":"*\([^"}]*\)"*}.*/\1/p'; }

words=$(sed 's/.*\(trace_event=\)/\1/' /proc/cmdline)
equal "doctor --boot prints the parameters of this boot" "$(allium doctor --boot | sed -n 's/^  trace_event=/trace_event=/p')" "$words"

echo 1 >events/sched/sched_process_exit/enable
allium sys import --boot -o /tmp/boot.allium 2>/tmp/said
equal "somebody else's event: it refuses" $? 3
holds "and says which" '^allium: somebody traces sched:sched_process_exit in the top-level buffers' /tmp/said
equal "nothing was written" "$(ls /tmp/boot.allium 2>/dev/null)" ""
echo 0 >events/sched/sched_process_exit/enable

equal "the events of the boot are on" "$(grep -c kmem: set_event)" 4
allium sys import --boot -o /tmp/boot.allium 2>/tmp/said
equal "it reads the trace" $? 0
sed 's/^/# /' /tmp/said
holds "it says that the trace ends" '^allium: ended the trace that began with the boot' /tmp/said
holds "nothing was lost" '^  lost       nothing$' /tmp/said
holds "one line says what came before" '^allium: before the first event, .* of the objects, .* were reserved$' /tmp/said
equal "the events of the boot are off" "$(grep -c . set_event)" 0
equal "tracing goes on for others" "$(cat tracing_on)" 1

reserved=$(dmesg | sed -n 's/.*Memory: .* \([0-9]*\)K reserved.*/\1/p')
shown=$(sed -n 's/^allium: before.*; \([0-9.]*\) MiB were reserved$/\1/p' /tmp/said)
equal "reserved memory as in the log" "$shown" "$(awk "BEGIN { printf \"%.1f\", $reserved / 1024 }")"
equal "no cache has bounds that cross" "$(value 'select count(*) v from sys_before where older_low > older_high or tracing_low > tracing_high')" 0
equal "older objects are not more than are active" "$(value 'select count(*) v from sys_before where older_high > active or tracing_high > active')" 0
equal "the first program is there" "$(value "select count(distinct comm) v from sys_kmem where comm in ('swapper', 'kthreadd', 'init')")" 3
allium report /tmp/boot.allium --no-pager >/tmp/report
holds "report has the line, too" '^before the first event, ' /tmp/report

allium sys import --boot -o /tmp/again.allium 2>/tmp/said
holds "a second time there is nothing" '^allium: the top-level buffers of tracefs are empty: they were read before' /tmp/said
echo mark >trace_marker
allium sys import --boot -o /tmp/again.allium 2>/tmp/said
equal "there are only marks: it refuses" $? 3
holds "and says so" '^allium: the top-level buffers of tracefs hold no event of kmem' /tmp/said
equal "no recording is left" "$(ls /tmp/again.allium 2>/dev/null)" ""

tracer=$(tr ' ' '\n' <available_tracers | grep -v nop | head -n 1)
echo 0 >tracing_on
echo "$tracer" >current_tracer
allium sys import --boot -o /tmp/again.allium 2>/tmp/said
equal "somebody else's tracer: it refuses" $? 3
holds "and says which" "^allium: the tracer $tracer is in use" /tmp/said
echo nop >current_tracer
echo 1 >tracing_on
