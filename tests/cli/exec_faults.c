/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls each function that executes a file, from children of fork() and vfork(), with paths, arguments and environments
 * that are right, missing or partly outside of memory. Prints how each call ended; PROGRAM prints its environment.
 *
 *     exec_faults PROGRAM    (in the working directory, and on PATH)
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

enum function { EXECVE, EXECVPE, FEXECVE, EXECVEAT, EXECVEAT_FD, SPAWN, SPAWNP, FUNCTIONS };
static const char *const functions[FUNCTIONS] = {"execve",      "execvpe",     "fexecve",     "execveat",
                                                 "execveat_fd", "posix_spawn", "posix_spawnp"};

struct arguments {
    const char *what;
    const char *path; /* of execve, execveat and posix_spawn */
    const char *name; /* of execvpe and posix_spawnp */
    const char *none; /* of execveat with a descriptor */
    char **argv, **envp;
};

static int file;

/* The bytes at the end of a page, behind which nothing can be read. */
static void *at_edge(const void *bytes, size_t n)
{
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + PAGE, PAGE, PROT_NONE))
        exit(1);
    return memcpy(pages + PAGE - n, bytes, n);
}

static int execute(enum function function, const struct arguments *a)
{
    switch (function) {
    case EXECVE:
        return execve(a->path, a->argv, a->envp);
    case EXECVPE:
        return execvpe(a->name, a->argv, a->envp);
    case FEXECVE:
        return fexecve(file, a->argv, a->envp);
    case EXECVEAT:
        return execveat(AT_FDCWD, a->path, a->argv, a->envp, 0);
    default:
        return execveat(file, a->none, a->argv, a->envp, AT_EMPTY_PATH);
    }
}

static void spawn(enum function function, const struct arguments *a)
{
    pid_t pid = -1;
    int status = 0, result = function == SPAWN ? posix_spawn(&pid, a->path, NULL, NULL, a->argv, a->envp)
                                               : posix_spawnp(&pid, a->name, NULL, NULL, a->argv, a->envp);
    if (!result)
        waitpid(pid, &status, 0);
    dprintf(1, "-> %d, status %x\n", result, status);
    _exit(0);
}

/* Ends the child, or replaces it. */
static void call(enum function function, const struct arguments *a)
{
    if (function >= SPAWN)
        spawn(function, a);
    int result = execute(function, a);
    dprintf(1, "-> %d, errno %d\n", result, errno);
    _exit(0);
}

static void try(enum function function, const struct arguments *a)
{
    int status = 0;
    dprintf(1, "%s, %s\n", functions[function], a->what);
    pid_t pid = fork();
    if (!pid)
        call(function, a);
    waitpid(pid, &status, 0);
    dprintf(1, "status %x\n", status);
    if (function >= SPAWN || WIFSIGNALED(status))
        return;
    pid = vfork();
    if (!pid)
        call(function, a);
    waitpid(pid, &status, 0);
    dprintf(1, "status %x\n", status);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    char path[PAGE], *bad = (char *)8, letters[200];
    char *arguments[] = {argv[1], "argument", NULL}, *with_bad_argument[] = {argv[1], bad, "argument", NULL};
    char *two[] = {"A=1", "LD_BIND_NOW=1", NULL}, *with_bad[] = {"A=1", bad, "B=2", NULL},
         *no_variables[] = {NULL};
    char *empty_preload[] = {"A=1", "LD_PRELOAD=", "B=2", NULL},
         *no_value[] = {"A", "LD_PRELOAD", "ALLIUM", "", NULL};
    char *preload[] = {"LD_PRELOAD=libm.so.6: ", "A=1", "LD_PRELOAD=libm.so.6:libdl.so.2", NULL};
    char *spaced[] = {"LD_PRELOAD= libm.so.6  libdl.so.2 :", NULL},
         *separators[] = {"LD_PRELOAD=: :", "A=1", NULL};
    char *twice[] = {"LD_PRELOAD=", "A=1", "LD_PRELOAD=", "A=2", NULL};
    char *cut[] = {"A=1", at_edge("LD_PRELOAD=x", 12), NULL}, *cut_name[] = {at_edge("LD_P", 4), "A=1", NULL};
    char *at_end[] = {at_edge("A=1", 4), at_edge("LD_PRELOAD=", 12), NULL};
    memset(letters, 'x', sizeof(letters));
    snprintf(path, sizeof(path), "./%s", argv[1]);
    file = open(path, O_RDONLY);
    char *cut_path = at_edge(letters, sizeof(letters));

    const struct arguments all[] = {
        {"all right", path, argv[1], "", arguments, two},
        {"no environment", path, argv[1], "", arguments, NULL},
        {"an empty environment", path, argv[1], "", arguments, no_variables},
        {"an environment outside of memory", path, argv[1], "", arguments, (char **)bad},
        {"an environment without an end", path, argv[1], "", arguments, at_edge(two, 16)},
        {"an environment at the end of a page", path, argv[1], "", arguments, at_edge(two, 24)},
        {"a variable outside of memory", path, argv[1], "", arguments, with_bad},
        {"an LD_PRELOAD without an end", path, argv[1], "", arguments, cut},
        {"a name without an end", path, argv[1], "", arguments, cut_name},
        {"variables at the end of a page", path, argv[1], "", arguments, at_end},
        {"an empty LD_PRELOAD", path, argv[1], "", arguments, empty_preload},
        {"variables without a value", path, argv[1], "", arguments, no_value},
        {"two LD_PRELOADs", path, argv[1], "", arguments, preload},
        {"two empty LD_PRELOADs", path, argv[1], "", arguments, twice},
        {"an LD_PRELOAD with blanks", path, argv[1], "", arguments, spaced},
        {"an LD_PRELOAD of separators", path, argv[1], "", arguments, separators},
        {"no arguments", path, argv[1], "", NULL, two},
        {"arguments outside of memory", path, argv[1], "", (char **)bad, two},
        {"an argument outside of memory", path, argv[1], "", with_bad_argument, two},
        {"no path", NULL, NULL, NULL, arguments, two},
        {"an empty path", "", "", "", arguments, two},
        {"a path outside of memory", bad, bad, bad, arguments, two},
        {"a path without an end", cut_path, cut_path, cut_path, arguments, two},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        for (int function = 0; function < FUNCTIONS; function++)
            try((enum function)function, &all[i]);
    return 0;
}
