# SPDX-License-Identifier: BSD-2-Clause
#: seconds 2

echo 1..1
echo ok 1 - one
sleep 1000 &
sleep 1000
