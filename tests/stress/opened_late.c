/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens the agent with dlopen() and calls each function that it exports, found with dlsym(): it forwards each to the
 * function that the program would have called. Prints the name of each function that did so.
 *
 *     opened_late AGENT global|local [LIBRARY]    LIBRARY is opened before the agent
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <spawn.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES     5000
#define ALIGNMENT 64

extern char **environ;
static void *agent;
static const char nothrow; /* an object that nobody reads */

static void *find(const char *name)
{
    void *at = dlsym(agent, name);
    Dl_info where;
    if (!at || !dladdr(at, &where) || !strstr(where.dli_fname, "liballium-agent")) {
        printf("%s is not the agent's\n", name);
        exit(1);
    }
    return at;
}

#define FIND(type, function) ((type)find(#function))

static void report(const char *name, int good)
{
    printf("%s%s\n", good ? "" : "wrong: ", name);
}

/* Fills the block, and gives it back by each of the two functions in turn. */
static void use(const char *name, void *p, size_t alignment)
{
    static int turn;
    void (*agents_free)(void *) = FIND(void (*)(void *), free);
    int good = p && !((uintptr_t)p % alignment) && malloc_usable_size(p) >= BYTES;
    if (p)
        memset(p, 1, BYTES);
    turn++ % 2 ? free(p) : agents_free(p);
    report(name, good);
}

static void allocate(void)
{
    void *p = NULL;
    size_t page = (size_t)getpagesize();
    use("malloc", FIND(void *(*)(size_t), malloc)(BYTES), 16);
    use("calloc", FIND(void *(*)(size_t, size_t), calloc)(BYTES, 1), 16);
    use("realloc", FIND(void *(*)(void *, size_t), realloc)(malloc(10), BYTES), 16);
    use("reallocarray", FIND(void *(*)(void *, size_t, size_t), reallocarray)(malloc(10), BYTES, 1), 16);
    use("aligned_alloc", FIND(void *(*)(size_t, size_t), aligned_alloc)(ALIGNMENT, 5056), ALIGNMENT);
    use("memalign", FIND(void *(*)(size_t, size_t), memalign)(ALIGNMENT, BYTES), ALIGNMENT);
    use("valloc", FIND(void *(*)(size_t), valloc)(BYTES), page);
    use("pvalloc", FIND(void *(*)(size_t), pvalloc)(BYTES), page);
    int bad = FIND(int (*)(void **, size_t, size_t), posix_memalign)(&p, ALIGNMENT, BYTES);
    use("posix_memalign", bad ? NULL : p, ALIGNMENT);
    FIND(void (*)(void *), free)(malloc(BYTES));
    report("free", 1);
    char *whole = FIND(char *(*)(const char *), strdup)("text");
    char *part = FIND(char *(*)(const char *, size_t), strndup)("text", 2);
    report("strdup", whole && !strcmp(whole, "text"));
    report("strndup", part && !strcmp(part, "te"));
    free(whole);
    free(part);
    report("malloc of too much", !FIND(void *(*)(size_t), malloc)(SIZE_MAX / 2) && errno == ENOMEM);
}

static void use_operators(void)
{
    static const char *const news[] = {"_Znwm",
                                       "_Znam",
                                       "_ZnwmRKSt9nothrow_t",
                                       "_ZnamRKSt9nothrow_t",
                                       "_ZnwmSt11align_val_t",
                                       "_ZnamSt11align_val_t",
                                       "_ZnwmSt11align_val_tRKSt9nothrow_t",
                                       "_ZnamSt11align_val_tRKSt9nothrow_t"};
    static const char *const deletes[] = {"_ZdlPv",
                                          "_ZdaPv",
                                          "_ZdlPvRKSt9nothrow_t",
                                          "_ZdaPvRKSt9nothrow_t",
                                          "_ZdlPvm",
                                          "_ZdaPvm",
                                          "_ZdlPvSt11align_val_t",
                                          "_ZdaPvSt11align_val_t",
                                          "_ZdlPvSt11align_val_tRKSt9nothrow_t",
                                          "_ZdaPvSt11align_val_tRKSt9nothrow_t",
                                          "_ZdlPvmSt11align_val_t",
                                          "_ZdaPvmSt11align_val_t"};
    for (size_t i = 0; i < sizeof(news) / sizeof(*news); i++) {
        void *(*make)(size_t, size_t, const void *) = find(news[i]);
        use(news[i], make(BYTES, ALIGNMENT, &nothrow), 16);
    }
    for (size_t i = 0; i < sizeof(deletes) / sizeof(*deletes); i++) {
        void (*release)(void *, size_t, size_t) = find(deletes[i]);
        release(malloc(BYTES), ALIGNMENT, ALIGNMENT);
        report(deletes[i], 1);
    }
}

static int ended(pid_t pid)
{
    int status;
    return waitpid(pid, &status, 0) == pid ? status : -1;
}

/* In a child of its own: each runs "true". */
#define EXECUTE(name, ...)                                                                                   \
    do {                                                                                                     \
        pid_t child = fork();                                                                                \
        if (!child) {                                                                                        \
            FIND(__typeof__(&name), name)(__VA_ARGS__);                                                      \
            _exit(1);                                                                                        \
        }                                                                                                    \
        report(#name, ended(child) == 0);                                                                    \
    } while (0)

static void execute(void)
{
    char path[] = "/bin/true", name[] = "true", *argv[] = {path, NULL};
    int fd = open(path, O_RDONLY);
    pid_t pid;
    EXECUTE(execve, path, argv, environ);
    EXECUTE(execv, path, argv);
    EXECUTE(execvp, name, argv);
    EXECUTE(execvpe, name, argv, environ);
    EXECUTE(fexecve, fd, argv, environ);
    EXECUTE(execveat, fd, "", argv, environ, AT_EMPTY_PATH);
    EXECUTE(execl, path, path, (char *)NULL);
    EXECUTE(execlp, name, path, (char *)NULL);
    EXECUTE(execle, path, path, (char *)NULL, environ);
    report("posix_spawn",
           !FIND(__typeof__(&posix_spawn), posix_spawn)(&pid, path, NULL, NULL, argv, environ) &&
               !ended(pid));
    report("posix_spawnp",
           !FIND(__typeof__(&posix_spawnp), posix_spawnp)(&pid, name, NULL, NULL, argv, environ) &&
               !ended(pid));
}

static void use_others(void)
{
    char text[100] = "";
    struct {
        uint32_t version;
        void *functions[8];
    } tags = {.version = 1};
    FILE *(*agents_popen)(const char *, const char *) = FIND(FILE * (*)(const char *, const char *), popen);
    report("system", FIND(int (*)(const char *), system)("exit 3") == 3 << 8);
    FILE *from = agents_popen("echo word", "r");
    report("popen", from && fgets(text, sizeof(text), from) && !strcmp(text, "word\n"));
    report("pclose", from && FIND(int (*)(FILE *), pclose)(from) == 0);
    report("fclose", FIND(int (*)(FILE *), fclose)(fopen("/dev/null", "r")) == 0);
    report("prctl", FIND(int (*)(int, ...), prctl)(PR_GET_NAME, text) == 0 && !strcmp(text, "opened_late"));
    report("syscall", FIND(long (*)(long, ...), syscall)(SYS_getpid) == getpid());
    errno = 0;
    report("mprotect",
           FIND(int (*)(void *, size_t, int), mprotect)(text + 1, 1, PROT_NONE) == -1 && errno == EINVAL);
    report("allium_agent_api", FIND(void *(*)(const void *), allium_agent_api)(&tags) == NULL);
}

static int end_with(void *code)
{
    return (int)(intptr_t)code;
}

/* Functions that only the library with call sites exports. */
static void use_those_of_sites(void)
{
    int locked = mlockall(MCL_CURRENT);
    report("mlockall", FIND(int (*)(int), mlockall)(MCL_CURRENT) == locked);
    munlockall();
    void *library = dlopen("libm.so.6", RTLD_NOW);
    report("dlclose", library && FIND(int (*)(void *), dlclose)(library) == 0);
    int status = 0;
    static char stack[1 << 16] __attribute__((aligned(16)));
    pid_t (*agents_vfork)(void) = FIND(pid_t(*)(void), vfork);
    pid_t child = agents_vfork();
    if (!child)
        _exit(5);
    report("vfork", waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 5);
    child = FIND(int (*)(int (*)(void *), void *, int, void *, ...), clone)(end_with, stack + sizeof(stack),
                                                                            SIGCHLD, (void *)6);
    report("clone", waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 6);
    report("allium_agent_trace",
           !FIND(bool (*)(uint32_t, uint64_t *, uint32_t), allium_agent_trace)(0, NULL, 0));
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc > 3 && !dlopen(argv[3], RTLD_NOW)) {
        printf("%s\n", dlerror());
        return 1;
    }
    agent = dlopen(argv[1], RTLD_NOW | (strcmp(argv[2], "global") ? RTLD_LOCAL : RTLD_GLOBAL));
    if (!agent) {
        printf("%s\n", dlerror());
        return 1;
    }
    allocate();
    use_operators();
    execute();
    use_others();
    if (strstr(argv[1], "-full"))
        use_those_of_sites();
    const char *period = getenv("ALLIUM_PERIOD"); /* the agent would have taken it out */
    report("environment", period && !strcmp(period, "1"));
    report("closed", dlclose(agent) == 0);
    free(malloc(BYTES));
    pid_t pid = fork();
    if (!pid)
        _exit(0);
    report("forked", ended(pid) == 0);
    return 0;
}
