/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The standard library's containers while operator new fails at random: each failure is an exception, which is caught,
 * and nothing is lost by it. Prints how many were caught. Built with <allium/operator_new.hh>.
 *
 *     thrown ROUNDS       they begin when a line comes
 */
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <vector>

#include <allium/operator_new.hh>

static unsigned long caught;

static void fill(unsigned n)
{
    std::vector<std::string> strings;
    std::map<int, std::string> map;
    for (unsigned i = 0; i < n; i++) {
        try {
            strings.push_back(std::string(10 + i % 90, 'x'));
            map[(int)i] = strings.back();
        } catch (const std::bad_alloc &) {
            caught++;
        }
    }
}

int main(int, char **argv)
{
    fill(50); /* all places are known now */
    puts("works");
    fflush(stdout);
    if (caught || getchar() == EOF)
        return 3;
    for (int i = 0, n = atoi(argv[1]); i < n; i++)
        fill((unsigned)i % 50);
    printf("%lu\n", caught);
    return 0;
}
