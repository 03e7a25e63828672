# SPDX-License-Identifier: BSD-2-Clause
#
# The recording of a boot, for the host: see diff_boots.py.
#: kernels 6.12
#: memory 512M
#: parameters trace_event=kmem:kmalloc,kmem:kfree,kmem:kmem_cache_alloc,kmem:kmem_cache_free,task:task_rename,task:task_newtask trace_buf_size=32M trace_clock=global trace_options=nooverwrite

. /tests/tap.sh
plan 2
allium sys import --boot -o /tmp/boot.allium 2>/tmp/said
equal "it reads the trace" $? 0
holds "nothing was lost" '^  lost       nothing$' /tmp/said
echo "# recording"
gzip -9 </tmp/boot.allium | base64 | sed 's/^/# /'
echo "# end of the recording"
