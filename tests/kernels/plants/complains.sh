# SPDX-License-Identifier: BSD-2-Clause
# What a kernel says of itself when something damaged it.

echo 1..1
echo 'BUG: planted' >/dev/kmsg
echo ok 1 - one
