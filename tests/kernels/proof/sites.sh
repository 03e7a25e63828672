# SPDX-License-Identifier: BSD-2-Clause
#
# All calls that allocated in this boot, with their bytes, for tests/kernels/sites.
#: memory 1024M
#: parameters trace_event=kmem:kmalloc,kmem:kmalloc_node,kmem:kmem_cache_alloc,kmem:kmem_cache_alloc_node trace_buf_size=96M trace_options=nooverwrite
#: modules xfs btrfs nfs nfsd overlay nf_tables dm_mod loop dummy veth bridge virtio_net vsock cifs

. /tests/tap.sh
plan 2
# Modules at work, besides their beginning.
mkdir /tmp/low /tmp/up /tmp/work /tmp/all /tmp/disk
mount -t overlay -o lowerdir=/tmp/low,upperdir=/tmp/up,workdir=/tmp/work overlay /tmp/all && echo >/tmp/all/file
dd if=/dev/zero of=/tmp/image bs=1M count=8 2>/dev/null
mke2fs -F /tmp/image >/dev/null 2>&1
mount -o loop /tmp/image /tmp/disk && echo >/tmp/disk/file
for kind in dummy veth bridge; do ip link add ${kind}9 type $kind; done 2>/dev/null

cd /sys/kernel/tracing
echo 0 >tracing_on
equal "nothing was lost" "$(cat per_cpu/cpu*/stats | grep -c '^overrun: [1-9]\|^dropped events: [1-9]')" 0
cat >/tmp/sum.awk <<'END'
{
    at = index($0, "call_site=")
    if (!at)
        next
    rest = substr($0, at + 10)
    site = substr(rest, 1, index(rest, " ptr=") - 1)
    count[site]++
    bytes[site] += substr(rest, index(rest, "bytes_alloc=") + 12) + 0
}
END { for (site in count) print "# site", count[site], bytes[site], site }
END
awk -f /tmp/sum.awk trace >/tmp/sites
cat /tmp/sites
[ "$(wc -l </tmp/sites)" -gt 500 ]
result $? "the boot has calls"
