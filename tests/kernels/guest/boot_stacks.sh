# SPDX-License-Identifier: BSD-2-Clause
#
# A boot whose objects the kernel itself records (slub_debug=U): the live objects of each call in the trace are those of
# /sys/kernel/debug/slab/*/alloc_traces; what the trace lacks is older, and within the bounds that slabinfo gives.
#: memory 512M
#: parameters trace_event=kmem:kmalloc,kmem:kfree,kmem:kmem_cache_alloc,kmem:kmem_cache_free,task:task_rename,task:task_newtask trace_buf_size=32M trace_clock=global trace_options=nooverwrite slub_debug=U

. /tests/tap.sh
plan 9

# value QUERY: of the recording
value() { allium sql /tmp/boot.allium "$1" --json | sed -n 's/^{"v":"*\([^"}]*\)"*}.*/\1/p'; }

allium sys import --boot -o /tmp/boot.allium 2>/tmp/said
equal "it reads the trace" $? 0
sed 's/^/# /' /tmp/said
holds "older objects have stacks" '^  by stack .* by the kernel.s records' /tmp/said

# A record that is dropped shows here: a free as one without an event, as its address comes again; an allocation as a free
# of something older. (One in 300 is found so.)
freed=$(sed -n 's/^  freed      \([0-9,]*\) objects\{0,1\} of .*/\1/p' /tmp/said | tr -d ,)
implied=$(sed -n 's/^  freed .* and \([0-9,]*\) without an event.*/\1/p' /tmp/said | tr -d ,)
older=$(sed -n 's/^  freed .* older than the trace: \([0-9,]*\) of kmalloc.*/\1/p' /tmp/said | tr -d ,)
echo "# $freed objects were freed with an event, ${implied:-0} without; $older older ones of kmalloc()"
[ $((${implied:-0} * 500)) -le "$freed" ]
result $? "at most 0.2 % of the frees have no event"
[ "$older" -le 20 ]
result $? "few objects of kmalloc() that are freed are older"

# Objects that are freed without an event, or by RCU once the trace has ended, are too many in the trace.
traced=$(value 'select sum(traced) v from sys_before_sites')
excess=$(value 'select sum(max(traced - recorded, 0)) v from sys_before_sites')
echo "# $traced objects are live in the trace, $excess of them not in the kernel's records:"
allium sql /tmp/boot.allium 'select traced - recorded n, traced, call_site from sys_before_sites where n > 0 order by n desc limit 8' | sed 's/^/# /'
[ $((excess * 500)) -le "$traced" ]
result $? "by call, at most 0.2 % of the trace's live objects are not the kernel's"

# Most calls are before or after the first event: there the two are equal.
calls=$(value 'select count(*) v from sys_before_sites where traced > 0')
equals=$(value 'select count(*) v from sys_before_sites where traced > 0 and traced = recorded')
echo "# $equals of $calls calls with traced objects are equal; of the others the kernel has more of:"
allium sql /tmp/boot.allium 'select recorded - traced n, traced, call_site from sys_before_sites where n > 0 and traced > 0 order by n desc limit 8' | sed 's/^/# /'
[ $((equals * 100)) -ge $((calls * 85)) ]
result $? "of 85 % of the calls, the live objects are the same"

pages=$(value "select recorded - traced v from sys_before_sites where call_site like '\_\_rb\_allocate\_pages+%' escape '\'")
kib=$(cat /sys/kernel/tracing/buffer_size_kb)
wanted=$(((kib * 1024 + 4079) / 4080 + 1))
echo "# $pages objects of the trace's own pages, $wanted pages in the buffer"
[ "$pages" -ge "$wanted" ] && [ "$pages" -le $((wanted + 4)) ]
result $? "the objects of the trace's own pages are counted"

low=$(value 'select sum((older_low + tracing_low) * object_bytes) v from sys_before')
high=$(value 'select sum((older_high + tracing_high) * object_bytes) v from sys_before')
exact=$(value 'select sum(older_memory_bytes) v from sys_before_stacks')
echo "# older: $exact bytes by the kernel's records, $low to $high by slabinfo"
[ $((low * 99)) -le $((exact * 100)) ] && [ "$exact" -le "$high" ]
result $? "older bytes are within the bounds (1 %)"

echo "# caches whose older objects are out of the bounds of their own:"
cat >/tmp/query <<'END'
select sum(s.older) n, b.older_low + b.tracing_low low, b.older_high + b.tracing_high high, b.caches
from sys_before b join sys_before_stacks s on instr(', ' || b.caches || ',', ', ' || s.cache || ',') > 0
where b.caches not like '% other%' group by b.caches, b.object_bytes having n < low or n > high order by 1 desc
END
allium sql /tmp/boot.allium "$(cat /tmp/query)" | sed 's/^/# /'
out=$(value "select count(*) v from ($(cat /tmp/query))")
[ "$out" -le 6 ]
result $? "with at most six exceptions, each cache's are"
