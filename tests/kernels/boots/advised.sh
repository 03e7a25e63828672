# SPDX-License-Identifier: BSD-2-Clause
#
# What `allium sys advise` says of a boot, the memory that the kernel has, and what "shrink" frees, for the host: see
# advise_boots.py.
#: kernels 6.12
#: memory 600M

. /tests/tap.sh
. /tests/shrink.sh
plan 1
sed -n 's/^\(MemTotal\|MemFree\): *\([0-9]*\) kB$/# figure \1 \2/p' /proc/meminfo
# Files that are gone leave slabs behind that are free, or nearly so.
mkdir /tmp/files
for file in $(seq 600); do : >/tmp/files/$file; done
for file in $(seq 600); do [ $((file % 97)) = 0 ] || rm /tmp/files/$file; done
sync
allium sys advise --json --top 0 >/tmp/advice
equal "it advises" $? 0
shrink_all /tmp/advice | sed 's/^/# shrunk /'
sed 's/^/# advice /' /tmp/advice
