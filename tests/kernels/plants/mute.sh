# SPDX-License-Identifier: BSD-2-Clause

echo nothing to say
