#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Packs what `allium sys import` wants of this machine: a trace of the kernel's allocators, the kernel's symbols if the
# trace needs them, and what the kernel's files tell of its memory. It needs root, sh, and cat, mkdir, rmdir, rm, mount,
# sleep and grep of busybox; tar, gzip, sed, dmesg and readlink are used if they are there. `allium sys import --script`
# prints it.
#
#     sh pack.sh [SECONDS [OUT]]
#
# SECONDS is the time to trace (10); 0 takes the trace that the kernel began with its boot, as it is. OUT (allium-pack)
# becomes OUT.tar.gz, OUT.tar without gzip, or a folder without tar. BUFFER_KB (4096) is the buffer of each CPU. All
# that is changed on the machine is undone.

seconds=${1:-10} out=${2:-allium-pack}
events="kmem/kmalloc kmem/kfree kmem/kmem_cache_alloc kmem/kmem_cache_free kmem/kmalloc_node kmem/kmem_cache_alloc_node
    kmem/mm_page_alloc kmem/mm_page_free kmem/mm_page_alloc_extfrag percpu/percpu_alloc_percpu
    percpu/percpu_free_percpu task/task_newtask task/task_rename"
instance='' mounted=''

fail() { echo "pack.sh: $1" >&2; exit 1; }

undo()
{
    [ -z "$instance" ] || rmdir "$instance" 2>/dev/null
    [ -z "$mounted" ] || umount "$mounted" 2>/dev/null
    instance='' mounted=''
}
trap undo EXIT
trap 'exit 1' HUP INT TERM

find_tracefs()
{
    for tracefs in /sys/kernel/tracing /sys/kernel/debug/tracing; do
        [ ! -d "$tracefs/events" ] || return 0
    done
    tracefs=/sys/kernel/tracing
    if [ -d $tracefs ] && mount -t tracefs none $tracefs 2>/dev/null; then
        mounted=$tracefs
    elif mount -t debugfs none /sys/kernel/debug 2>/dev/null; then
        mounted=/sys/kernel/debug tracefs=/sys/kernel/debug/tracing
    fi
    [ -d "$tracefs/events" ] || fail "there is no tracefs: run it as root, on a kernel with CONFIG_TRACEPOINTS"
}

# In buffers of its own, so that nobody else's tracing is touched.
trace()
{
    mkdir "$tracefs/instances/allium-pack-$$" 2>/dev/null || fail "cannot make a tracing instance: it needs root"
    instance=$tracefs/instances/allium-pack-$$
    echo "${BUFFER_KB:-4096}" >"$instance/buffer_size_kb" || fail "there is no memory for the buffers: set BUFFER_KB"
    echo mono >"$instance/trace_clock" 2>/dev/null
    echo nohash-ptr >"$instance/trace_options" 2>/dev/null
    for event in $events; do
        [ ! -d "$instance/events/$event" ] || echo 1 >"$instance/events/$event/enable"
    done
    sleep "$seconds"
    echo 0 >"$instance/tracing_on"
}

copy()
{
    mkdir -p "$out/state/${1%/*}"
    cat "$1" >"$out/state$1" 2>/dev/null || rm -f "$out/state$1"
}

# A line for each attribute: thousands of files are read by the shell itself.
slab()
{
    for cache in /sys/kernel/slab/*; do
        name=${cache##*/}
        if [ -L "$cache" ]; then
            printf '%s\t->\t%s\n' "$name" "$(readlink "$cache")"
            continue
        fi
        for attribute in align cpu_partial cpu_slabs destroy_by_rcu hwcache_align min_partial object_size objects \
            objects_partial objs_per_slab order partial reclaim_account sheaf_capacity slab_size slabs \
            slabs_cpu_partial total_objects usersize; do
            { read -r value <"$cache/$attribute"; } 2>/dev/null || continue
            printf '%s\t%s\t%s\n' "$name" "$attribute" "$value"
        done
    done
}

state()
{
    for file in /proc/slabinfo /proc/buddyinfo /proc/meminfo /proc/pagetypeinfo /proc/vmstat /proc/zoneinfo \
        /proc/vmallocinfo /proc/modules /proc/cmdline /proc/sys/kernel/osrelease /proc/sys/fs/dentry-state \
        /proc/sys/fs/inode-nr /proc/config.gz /sys/kernel/notes; do
        [ ! -r "$file" ] || copy "$file"
    done
    config=/boot/config-$(cat /proc/sys/kernel/osrelease)
    [ -e /proc/config.gz ] || [ ! -r "$config" ] || copy "$config"
    mkdir -p "$out/state/sys/kernel" "$out/state/dev"
    [ ! -d /sys/kernel/slab ] || slab >"$out/state/sys/kernel/slab"
    dmesg -r 2>/dev/null |
        sed -n 's/^<\([0-9]*\)>\[ *\([0-9]*\)\.\([0-9]*\)\] /\1,0,\2\3,-;/p' >"$out/state/dev/kmsg" 2>/dev/null
}

[ ! -e "$out" ] || fail "$out exists: give another name"
find_tracefs
mkdir "$out" || fail "cannot make the folder $out"
if [ "$seconds" = 0 ]; then
    instance='' source=$tracefs
else
    trace
    source=$instance
fi
state
cat "$source/trace" >"$out/trace" || fail "cannot read the trace, or write $out/trace"
grep -q 'call_site=[^ ]*+0x' "$out/trace" || cat /proc/kallsyms >"$out/kallsyms"
undo
made=$out
if tar -cf "$out.tar" "$out" 2>/dev/null; then
    rm -rf "$out"
    made=$out.tar
    ! gzip -f "$made" 2>/dev/null || made=$made.gz
else
    rm -f "$out.tar"
fi
echo "$made"
