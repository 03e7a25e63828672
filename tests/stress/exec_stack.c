/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stack that starting a program takes, with an environment of COUNT variables, by each function that can start one, on
 * a stack of this program's own with a guard page below it.
 *
 *     exec_stack thread|sigaltstack COUNT PROGRAM    prints "FUNCTION_CHILD BYTES" for each; CHILD: fork, vfork, spawn
 *     exec_stack repeat COUNT PROGRAM                prints by how many KiB the address space grew
 *
 * The function is called in a process of its own, whose small stack is shared memory and painted before the call: the
 * first process sees how far the paint is gone.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE    4096
#define PAINT   0x5aa5c33c96699669u
#define THREADS 4
#define ROUNDS  100

static enum {
    EXECVE,
    EXECVPE,
    FEXECVE,
    EXECVEAT,
    POSIX_SPAWN,
    POSIX_SPAWNP,
    SYSTEM,
    POPEN,
    FUNCTIONS
} function;
static enum { FORK, VFORK, SPAWN } how;
static const char *const functions[FUNCTIONS] = {"execve",      "execvpe",      "fexecve", "execveat",
                                                 "posix_spawn", "posix_spawnp", "system",  "popen"};

static char *stack, **variables, *program, *name; /* the name is found on PATH */
static size_t stack_bytes;
static volatile uintptr_t *top; /* shared: where the painted part ends */
static int program_fd;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static char **make_environment(size_t count)
{
    char **list = calloc(count + 3, sizeof(*list));
    if (!list || asprintf(&list[count], "PATH=%s", getenv("PATH")) < 0)
        fail("asprintf");
    list[count + 1] = "ALLIUM_PERIOD=1"; /* of the child; this program is not to be sampled */
    for (size_t i = 0; i < count; i++)
        if (asprintf(&list[i], "VARIABLE_%zu=value number %zu", i, i) < 0)
            fail("asprintf");
    return list;
}

static void *shared_memory(size_t bytes)
{
    char *p = mmap(NULL, PAGE + bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p, PAGE, PROT_NONE))
        fail("mmap");
    return p + PAGE;
}

/* Paints what lies below the caller's frame and the red zone. */
__attribute__((noinline)) static void paint(uintptr_t below)
{
    *top = below - 256;
    for (volatile uint64_t *at = (uint64_t *)(void *)stack; at < (uint64_t *)*top; at++)
        if ((uintptr_t)at + 256 < (uintptr_t)__builtin_frame_address(0))
            *at = PAINT;
}

static size_t depth(void)
{
    const uint64_t *at = (const uint64_t *)(const void *)stack;
    while ((uintptr_t)at < *top && *at == PAINT)
        at++;
    return *top - (uintptr_t)at;
}

__attribute__((noinline)) static void execute(void)
{
    char *argv[] = {program, NULL};
    switch (function) {
    case EXECVE:
        execve(program, argv, variables);
        break;
    case EXECVPE:
        execvpe(name, argv, variables);
        break;
    case FEXECVE:
        fexecve(program_fd, argv, variables);
        break;
    default:
        execveat(AT_FDCWD, program, argv, variables, 0);
    }
    _exit(111);
}

static void await(pid_t pid, const char *what)
{
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status)) {
        fprintf(stderr, "%s: the child did not end with 0\n", what);
        exit(1);
    }
}

static int spawn(pid_t *pid)
{
    char *argv[] = {program, NULL};
    return function == POSIX_SPAWNP ? posix_spawnp(pid, name, NULL, NULL, argv, variables)
                                    : posix_spawn(pid, program, NULL, NULL, argv, variables);
}

/* Runs on the small stack, in a process of its own: ends it. */
static void start(void)
{
    pid_t pid = -1;
    if (how == VFORK) {
        pid = vfork();
        if (pid) {
            await(pid, functions[function]);
            exit(0);
        }
    }
    paint((uintptr_t)__builtin_frame_address(0));
    if (how == FORK || how == VFORK)
        execute();
    if (function == SYSTEM)
        exit(system(program));
    if (function == POPEN)
        exit(pclose(popen(program, "w")));
    await(spawn(&pid) ? -1 : pid, functions[function]);
    exit(0);
}

static void *on_thread(void *arg)
{
    start();
    return arg;
}

static void on_signal(int number)
{
    (void)number;
    start();
}

static void start_on_thread(void)
{
    pthread_attr_t attributes;
    pthread_t id;
    if (pthread_attr_init(&attributes) || pthread_attr_setstack(&attributes, stack, stack_bytes) ||
        pthread_create(&id, &attributes, on_thread, NULL) || pthread_join(id, NULL))
        fail("thread");
}

static void start_on_sigaltstack(void)
{
    stack_t own = {.ss_sp = stack, .ss_size = stack_bytes};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    if (sigaltstack(&own, NULL) || sigaction(SIGUSR1, &action, NULL) || raise(SIGUSR1))
        fail("signal");
}

static void measure(bool thread)
{
    static const char *const children[] = {"fork", "vfork", "spawn"};
    for (how = FORK; how <= SPAWN; how++)
        for (function = how == SPAWN ? POSIX_SPAWN : EXECVE;
             function < (how == SPAWN ? FUNCTIONS : POSIX_SPAWN); function++) {
            pid_t pid = fork();
            if (!pid) {
                thread ? start_on_thread() : start_on_sigaltstack();
                _exit(112);
            }
            await(pid, functions[function]);
            printf("%s_%s %zu\n", functions[function], children[how], depth());
        }
}

static void *start_often(void *arg)
{
    char *argv[] = {program, NULL}, nowhere[] = "/nowhere/at/all";
    for (int i = 0; i < ROUNDS; i++) {
        pid_t pid = vfork();
        if (!pid) {
            execve(nowhere, argv, variables);
            execve(program, argv, variables);
            _exit(111);
        }
        await(pid, "execve");
        if (spawn(&pid))
            fail("posix_spawn");
        await(pid, "posix_spawn");
        if (!posix_spawn(&pid, nowhere, NULL, NULL, argv, variables))
            fail("posix_spawn of nothing");
    }
    return arg;
}

static long address_space_kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld", &pages) != 1)
        fail("statm");
    fclose(file);
    return pages * (PAGE / 1024);
}

static void repeat(void)
{
    pthread_t ids[THREADS];
    long before = 0;
    for (int round = 0; round < 2; round++) { /* stacks of threads are kept by libc after the first round */
        before = address_space_kib();
        for (int i = 0; i < THREADS; i++)
            if (pthread_create(&ids[i], NULL, start_often, NULL))
                fail("thread");
        for (int i = 0; i < THREADS; i++)
            pthread_join(ids[i], NULL);
    }
    printf("growth_kib %ld\n", address_space_kib() - before);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    setvbuf(stdout, NULL, _IONBF, 0);
    program = argv[3];
    name = basename(program);
    program_fd = open(program, O_RDONLY | O_CLOEXEC);
    variables = make_environment(strtoul(argv[2], NULL, 10));
    environ = variables;
    top = shared_memory(PAGE);
    stack_bytes = !strcmp(argv[1], "thread") ? 16 << 10 : 8 << 10;
    stack = shared_memory(stack_bytes);
    if (!strcmp(argv[1], "repeat"))
        repeat();
    else
        measure(!strcmp(argv[1], "thread"));
    return 0;
}
