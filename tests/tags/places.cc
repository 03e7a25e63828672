// SPDX-License-Identifier: BSD-2-Clause
// Places in C++: what each holds at the end is in the comment that its line ends with, NAME CALLS BYTES.
#include "places.h"

#include <map>
#include <string>
#include <vector>

#include <allium/tag.h>

static void *ordinary(size_t n)
{
    return malloc(n); // ordinary
}

#ifdef UNUSED_CODE
void is_not_there();

void *never_called(size_t n)
{
    is_not_there();
    return malloc(n); // unused
}
#endif

int main()
{
    holder h = {ordinary(100)};
    h.free(h.malloc);
    void *(*volatile pointer)(size_t) = malloc; // untagged
    void *untagged = pointer(77);
    free(untagged);
    std::free(several<int>(3));
    several<int>(4);
    several<double>(2);
    several<char>(5);
    twin("four");
    other_unit();
    std::map<std::string, std::vector<int>> m;
    m["a"].push_back(1);
    struct allium_tag *tag = ALLIUM_TAG("arena", "pages"); // arena
    allium_account(tag, 4096);
    allium_account(tag, 8192);
    allium_unaccount(tag, 4096);
    return m.size() != 1;
}
