# SPDX-License-Identifier: BSD-2-Clause
# The same code as of one that took too long.

echo 1..1
echo ok 1 - one
kill -KILL $$
