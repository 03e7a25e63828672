# SPDX-License-Identifier: BSD-2-Clause

echo 1..1
echo b >/proc/sysrq-trigger
