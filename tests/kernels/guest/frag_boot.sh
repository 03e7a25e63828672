# SPDX-License-Identifier: BSD-2-Clause
#
# `allium sys frag` of a trace that began with the boot: the slabs of all caches and the kmallocs of whole pages that were
# traced are Slab: of meminfo, but for 1 %.
#: memory 512M
#: parameters trace_event=kmem:kmalloc,kmem:kfree,kmem:kmem_cache_alloc,kmem:kmem_cache_free,task:task_rename,task:task_newtask trace_buf_size=32M trace_clock=global trace_options=nooverwrite

. /tests/tap.sh
plan 3

value() { sed -n "s/.*\"$1\":\([-0-9]*\).*/\1/p" /tmp/report; }

echo 1 >/proc/sys/vm/stat_refresh
allium sys import --boot -o /tmp/boot.allium 2>/tmp/said
equal "it reads the trace" $? 0
sed 's/^/# /' /tmp/said
allium sys frag --from /tmp/boot.allium --json >/tmp/report
grep -o '"check":{[^}]*}' /tmp/report | sed 's/^/# /'
[ "$(value large_kmalloc_bytes)" -gt 0 ]
result $? "kmallocs of whole pages are known"
rest=$(value rest_bytes)
[ $((${rest#-} * 100)) -le "$(value meminfo_slab_bytes)" ]
result $? "the rest is at most 1 %"
