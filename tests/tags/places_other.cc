// SPDX-License-Identifier: BSD-2-Clause
#include "places.h"

void other_unit()
{
    twin("seven77");
    several<double>(1);
    std::free(malloc(9)); // other
}
