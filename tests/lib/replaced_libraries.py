# SPDX-License-Identifier: BSD-2-Clause
"""A program that loads two libraries in turns, the one at the address of the other, while a thread runs the code of a
third one; and what their calls of malloc add up to.
"""
import contextlib

from tap import check, equal, private_dir, succeed

PLUGIN = """
#include <stdlib.h>
static void *volatile kept;
#define TAKES(name, size) \\
    __attribute__((noinline)) void name(void) { kept = malloc(size); free(kept); kept = NULL; }
TAKES(take_NAME, SIZE)
TAKES(begin_NAME, SIZE + 1)
TAKES(end_NAME, SIZE + 2)
__attribute__((constructor)) static void begins(void) { begin_NAME(); kept = NULL; }
__attribute__((destructor)) static void ends(void) { end_NAME(); kept = NULL; }
"""
# Arguments: the libraries, and the number of turns. With one more argument the program says "ready" and waits for a
# byte of its input before it begins and when it is done, and its thread is slow.
LOADER = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int done, waits;
static unsigned long taken;
static void *work(void *take)
{
    for (; !__atomic_load_n(&done, __ATOMIC_ACQUIRE) || taken < 1000; taken++) {
        ((void (*)(void))take)();
        if (waits)
            usleep(50);
    }
    return NULL;
}
static void pause_here(void)
{
    char c;
    if (waits && read(0, &c, 1) < 0)
        abort();
}
int main(int argc, char **argv)
{
    const int turns = atoi(argv[4]);
    void *stays = dlopen(argv[3], RTLD_NOW), *at[2] = {NULL};
    unsigned long same = 0;
    pthread_t thread;
    waits = argc == 6;
    if (waits && write(1, "ready\\n", 6) != 6)
        abort();
    pause_here();
    pthread_create(&thread, NULL, work, dlsym(stays, "take_stay"));
    for (int turn = 0; turn < turns; turn++) {
        void *library = dlopen(argv[1 + turn % 2], RTLD_NOW);
        void *take = dlsym(library, turn % 2 ? "take_two" : "take_one");
        for (int i = 0; i < 5; i++)
            ((void (*)(void))take)();
        at[turn % 2] = take;
        same += at[0] == at[1];
        dlclose(library);
    }
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    printf("%lu %lu\\n", same, taken);
    fflush(stdout);
    pause_here();
    return argc < 5;
}
"""


def compiled(folder, name, text, *words):
    path = folder + "/" + name
    with open(path + ".c", "w") as file:
        file.write(text)
    succeed(["cc", "-O1", "-g", "-fno-builtin", "-pthread", path + ".c", "-o", path, *words])
    return path


@contextlib.contextmanager
def built_in_folder():
    """-> the program and its first arguments"""
    with private_dir() as folder:
        libraries = [compiled(folder, name + ".so", PLUGIN.replace("NAME", name).replace("SIZE", str(size)), "-shared",
                              "-fPIC") for name, size in (("one", 1000), ("two", 2000), ("stay", 3000))]
        yield [compiled(folder, "loader", LOADER), *libraries]


def check_calls(rows, turns, taken, constructed=1):
    """`rows`: of malloc.size,by=site. `constructed`: how often the library that stays was loaded meanwhile."""
    half = turns // 2
    want = {"take_stay": (taken, 3000 * taken)}
    if constructed:
        want.update({"begin_stay": (1, 3001), "end_stay": (1, 3002)})
    for name, size in ("one", 1000), ("two", 2000):
        want.update({"take_" + name: (5 * half, 5 * half * size), "begin_" + name: (half, half * (size + 1)),
                     "end_" + name: (half, half * (size + 2))})
    found = {row["site"].split()[0]: (row["count"], row["sum_bytes"]) for row in rows if row["site"]}
    equal({name: found.get(name) for name in want}, want, "calls of libraries")
    check(not any(row["other_keys"] for row in rows), "too many keys", rows)
