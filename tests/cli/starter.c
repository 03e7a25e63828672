/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts PROGRAM once with each function that can, from a child of fork or vfork where it takes one; the last line
 * tells how each ended. PROGRAM is in the working directory and on PATH.
 *
 *     starter fork|vfork PROGRAM
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define WAYS 16

static char path[4096];
static const char *name;
static int folder, file;

static void start(int way)
{
    char *argv[] = {(char *)name, "argument", NULL};
    switch (way) {
    case 0:
        execve(path, argv, environ);
        break;
    case 1:
        execv(path, argv);
        break;
    case 2:
        execvp(name, argv);
        break;
    case 3:
        execvpe(name, argv, environ);
        break;
    case 4:
        execl(path, name, "argument", (char *)NULL);
        break;
    case 5:
        execlp(name, name, "argument", (char *)NULL);
        break;
    case 6:
        execle(path, name, "argument", (char *)NULL, environ);
        break;
    case 7:
        fexecve(file, argv, environ);
        break;
    case 8:
        execveat(folder, name, argv, environ, 0);
        break;
    default:
        execveat(file, "", argv, environ, AT_EMPTY_PATH);
        break;
    }
}

static int ended(pid_t pid)
{
    int status;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int from_child(int way, int share_memory)
{
    pid_t pid = share_memory ? vfork() : fork();
    if (pid)
        return ended(pid);
    start(way);
    _exit(126);
}

static int spawned(int search)
{
    char *argv[] = {(char *)name, "argument", NULL};
    pid_t pid;
    int bad = search ? posix_spawnp(&pid, name, NULL, NULL, argv, environ)
                     : posix_spawn(&pid, path, NULL, NULL, argv, environ);
    return bad ? -bad : ended(pid);
}

/* From inside libc, if nobody stands before it. */
static int by_shell(int way)
{
    char command[300], text[4096];
    snprintf(command, sizeof(command), "./%s argument", name);
    if (way == 0) {
        fflush(stdout);
        int status = system(command);
        return WEXITSTATUS(status);
    }
    if (way == 3) { /* what cannot be written any more is told when the stream is closed */
        FILE *to = popen("exit 0", "w");
        signal(SIGPIPE, SIG_IGN);
        usleep(50000);
        fputs(path, to);
        return pclose(to) == EOF;
    }
    FILE *from = popen(command, "r");
    while (from && fgets(text, sizeof(text), from))
        fputs(text, stdout);
    int (*volatile close_it)(FILE *) = way == 1 ? pclose : fclose; /* one that the compiler does not know */
    int status = from ? close_it(from) : -1;
    return way == 1 ? WEXITSTATUS(status) : waitpid(-1, &status, WNOHANG) < 0;
}

int main(int argc, char **argv)
{
    int codes[WAYS];
    if (argc < 3)
        return 2;
    int share_memory = !strcmp(argv[1], "vfork");
    name = argv[2];
    folder = open(".", O_RDONLY | O_DIRECTORY); /* not O_CLOEXEC: scripts are read through these */
    file = open(name, O_RDONLY);
    if (!getcwd(path, sizeof(path) - strlen(name) - 2))
        return 3;
    snprintf(path + strlen(path), sizeof(path) - strlen(path), "/%s", name);
    for (int way = 0; way < WAYS; way++)
        codes[way] = way < WAYS - 6   ? from_child(way, share_memory)
                     : way < WAYS - 4 ? spawned(way == WAYS - 5)
                                      : by_shell(way - (WAYS - 4));
    for (int way = 0; way < WAYS; way++)
        printf("%d%c", codes[way], way + 1 < WAYS ? ' ' : '\n');
    return 0;
}
