/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/exec/exec.h"

#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/exec/preload_env.h"
#include "agent/hooks/cold.h"
#include "agent/hooks/resolve.h"
#include "base/sigsafe/str.h"
#include "base/sigsafe/syscall.h"
#include "wire/unobserved_list.h"

/*
 * Before our target executes a file we look whether the program in it can carry the agent; if so, it gets an environment
 * with our entries, made on the stack of the caller: it may be a vfork child or a signal handler. What starts programs
 * from inside libc, past these functions, is in system_popen.c.
 */

#define PATH_BYTES 1024u

typedef int execve_fn(const char *, char *const[], char *const[]);
typedef int spawn_fn(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                     char *const[], char *const[]);

static struct {
    execve_fn *execve, *execvpe;
    int (*fexecve)(int, char *const[], char *const[]);
    int (*execveat)(int, const char *, char *const[], char *const[], int);
    spawn_fn *posix_spawn, *posix_spawnp;
} next_exec;

/* One call of one of them. */
struct call {
    enum { EXECVE, EXECVPE, FEXECVE, EXECVEAT, SPAWN, SPAWNP } of;
    int fd, flags;
    const char *path;
    char *const *argv;
    pid_t *pid;
    const posix_spawn_file_actions_t *actions;
    const posix_spawnattr_t *attributes;
};

void exec_init(void)
{
    next_exec.execve = resolve_next("execve", NULL);
    next_exec.execvpe = resolve_next("execvpe", NULL);
    next_exec.fexecve = resolve_next("fexecve", NULL);
    next_exec.execveat = resolve_next("execveat", NULL);
    next_exec.posix_spawn = resolve_next("posix_spawn", NULL);
    next_exec.posix_spawnp = resolve_next("posix_spawnp", NULL);
}

static ONE_COPY int go(const struct call *c, char *const *envp)
{
    switch (c->of) {
    case EXECVE:
        return next_exec.execve(c->path, c->argv, envp);
    case EXECVPE:
        return next_exec.execvpe(c->path, c->argv, envp);
    case FEXECVE:
        return next_exec.fexecve(c->fd, c->argv, envp);
    case EXECVEAT:
        return next_exec.execveat(c->fd, c->path, c->argv, envp, c->flags);
    case SPAWN:
        return next_exec.posix_spawn(c->pid, c->path, c->actions, c->attributes, c->argv, envp);
    default:
        return next_exec.posix_spawnp(c->pid, c->path, c->actions, c->attributes, c->argv, envp);
    }
}

/* ---- the file ---- */

static const char *search_path(void)
{
    for (char *const *e = environ; e && *e; e++)
        if (text_starts(*e, "PATH="))
            return *e + 5;
    return "/bin:/usr/bin";
}

static bool is_program(const char *path)
{
    struct stat st;
    return !sys_failed(sys_call(SYS_newfstatat, AT_FDCWD, path, &st, 0)) && S_ISREG(st.st_mode) &&
           !sys_failed(sys_call(SYS_faccessat, AT_FDCWD, path, X_OK));
}

/* As execvp(3) finds it. */
static enum carrier judge_on_path(const char *name)
{
    char path[PATH_BYTES];
    if (text_find(name, "/"))
        return preload_check_judge(AT_FDCWD, name);
    for (const char *dir = search_path(); *name; dir++) {
        size_t n = 0;
        for (; *dir && *dir != ':'; dir++)
            if (n + 2 < sizeof(path))
                path[n++] = *dir;
        if (n)
            path[n++] = '/';
        text_copy(path + n, sizeof(path) - n, name);
        if (is_program(path))
            return preload_check_judge(AT_FDCWD, path);
        if (!*dir)
            break;
    }
    return PRELOAD_CHECK_YES;
}

static enum carrier judge(const struct call *c)
{
    const char *agent = resolve_own_path();
    if (agent && sys_failed(sys_call(SYS_faccessat, AT_FDCWD, agent, R_OK)))
        return PRELOAD_CHECK_NO_AGENT;
    switch (c->of) {
    case FEXECVE:
        return preload_check_judge_file(c->fd);
    case EXECVEAT:
        return c->flags & AT_EMPTY_PATH && !*c->path ? preload_check_judge_file(c->fd)
                                                     : preload_check_judge(c->fd, c->path);
    case EXECVPE:
    case SPAWNP:
        return judge_on_path(c->path);
    default:
        return preload_check_judge(AT_FDCWD, c->path);
    }
}

static int run_with_us(const struct call *c, char *const *envp)
{
    size_t pointers, bytes;
    if (!preload_env_room(envp, &pointers, &bytes))
        return go(c, envp);
    char **more = alloca(pointers * sizeof(*more));
    preload_env_put_in(envp, more, alloca(bytes));
    int result = go(c, more);
    bool too_much = result == E2BIG || (result == -1 && errno == E2BIG);
    return too_much ? go(c, envp) : result; /* it might just have fitted */
}

/* Here the recorder finds a ledger only as long as its process lives: no directory can be had (chroot). */
static bool is_out_of_sight(void)
{
    char dir[LEDGER_PATH_BYTES];
    if (!text_find(process.config.dir, "/" LEDGER_RUN_PREFIX))
        return false;
    long fd = ledger_open_dir(&process.config, dir, true);
    if (!sys_failed(fd))
        sys_call(SYS_close, fd);
    return sys_failed(fd);
}

static int run_unseen(const struct call *c, char *const *envp)
{
    process_count_loss(LEDGER_LOST_CHILDREN);
    int result = run_with_us(c, envp);
    if (result)
        process_uncount_loss(LEDGER_LOST_CHILDREN);
    return result;
}

static ONE_COPY int run(const struct call *c, char *const *envp)
{
    if (unlikely(!next_exec.execve))
        boot_agent();
    if (!preload_env_is_handed_on())
        return go(c, envp);
    /* After seccomp nothing more may be asked of the kernel, and the child is under the same filter. */
    bool sealed = load_relaxed(&process.ledger.sealed);
    enum carrier found = sealed ? PRELOAD_CHECK_SEALED : judge(c);
    if (found == PRELOAD_CHECK_YES)
        return is_out_of_sight() ? run_unseen(c, envp) : run_with_us(c, envp);
    const char *path = c->path ? c->path : "";
    bool noted = !sealed && unobserved_note(&process.config, found, path, true);
    if (!noted)
        process_count_loss(LEDGER_LOST_CHILDREN);
    int result = go(c, envp);
    if (result && noted)
        unobserved_note(&process.config, found, path, false);
    return result;
}

/* ---- the hooks ---- */

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    return run(&(struct call){.of = EXECVE, .path = path, .argv = argv}, envp);
}

EXPORT int execv(const char *path, char *const argv[])
{
    return run(&(struct call){.of = EXECVE, .path = path, .argv = argv}, environ);
}

EXPORT int execvp(const char *file, char *const argv[])
{
    return run(&(struct call){.of = EXECVPE, .path = file, .argv = argv}, environ);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
    return run(&(struct call){.of = EXECVPE, .path = file, .argv = argv}, envp);
}

EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
    return run(&(struct call){.of = FEXECVE, .fd = fd, .argv = argv}, envp);
}

EXPORT int execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags)
{
    return run(&(struct call){.of = EXECVEAT, .fd = fd, .path = path, .argv = argv, .flags = flags}, envp);
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    return run(&(struct call){.of = SPAWN,
                              .path = path,
                              .argv = argv,
                              .pid = pid,
                              .actions = actions,
                              .attributes = attributes},
               envp);
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    return run(&(struct call){.of = SPAWNP,
                              .path = file,
                              .argv = argv,
                              .pid = pid,
                              .actions = actions,
                              .attributes = attributes},
               envp);
}

/* The list of arguments as an array on the stack, the pointers first counted. */
#define GATHER(list, first, argv)                                                                            \
    va_list list, counted;                                                                                   \
    size_t n_##argv = 1;                                                                                     \
    va_start(list, first);                                                                                   \
    va_copy(counted, list);                                                                                  \
    while (va_arg(counted, char *))                                                                          \
        n_##argv++;                                                                                          \
    va_end(counted);                                                                                         \
    char **argv = alloca((n_##argv + 1) * sizeof(*argv));                                                    \
    argv[0] = (char *)(uintptr_t)first;                                                                      \
    for (size_t i = 1; i <= n_##argv; i++)                                                                   \
    argv[i] = va_arg(list, char *)

EXPORT int execl(const char *path, const char *first, ...)
{
    GATHER(list, first, argv);
    va_end(list);
    return execv(path, argv);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
    GATHER(list, first, argv);
    va_end(list);
    return execvp(file, argv);
}

EXPORT int execle(const char *path, const char *first, ...)
{
    GATHER(list, first, argv);
    char *const *envp = va_arg(list, char *const *);
    va_end(list);
    return execve(path, argv, envp);
}
