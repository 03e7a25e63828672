/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/exec/exec.h"

#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/exec/exec_scratch.h"
#include "agent/exec/preload_env.h"
#include "agent/hooks/cold.h"
#include "agent/hooks/resolve.h"
#include "base/sigsafe/str.h"
#include "base/sigsafe/syscall.h"
#include "wire/unobserved_list.h"

/*
 * Hooks of the functions that execute a file. Each checks first whether the program in the file can run with the agent;
 * if so, the agent's entries are added to the environment of the program. The stack of the caller may be small, and the
 * caller may be a vfork child or a signal handler: so large data lie in a struct exec_scratch. libc's system(3) and
 * popen(3) start programs without calling these functions: see system_popen.c.
 */

typedef int execve_fn(const char *, char *const[], char *const[]);
typedef int spawn_fn(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                     char *const[], char *const[]);

static struct {
    execve_fn *execve, *execvpe;
    int (*fexecve)(int, char *const[], char *const[]);
    int (*execveat)(int, const char *, char *const[], char *const[], int);
    spawn_fn *posix_spawn, *posix_spawnp;
} next_exec;

/* The arguments of a call of one of the hooks, without the environment. */
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

static ONE_COPY int call_real(const struct call *c, char *const *envp)
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

static bool is_program(struct exec_scratch *s)
{
    struct stat *st = &s->check.st;
    return !sys_failed(sys_call(SYS_newfstatat, AT_FDCWD, s->path, st, 0)) && S_ISREG(st->st_mode) &&
           !sys_failed(sys_call(SYS_faccessat, AT_FDCWD, s->path, X_OK));
}

/* Checks the file that execvp(3) would find for this name. PRELOAD_CHECK_YES, too, if there is no such file. */
static enum preload_check_result check_on_path(struct exec_scratch *s, const char *name)
{
    if (text_find(name, "/"))
        return preload_check_judge(&s->check, AT_FDCWD, name);
    for (const char *dir = search_path(); *name; dir++) {
        size_t n = 0;
        for (; *dir && *dir != ':'; dir++)
            if (n + 2 < sizeof(s->path))
                s->path[n++] = *dir;
        if (n)
            s->path[n++] = '/';
        text_copy(s->path + n, sizeof(s->path) - n, name);
        if (is_program(s))
            return preload_check_judge(&s->check, AT_FDCWD, s->path);
        if (!*dir)
            break;
    }
    return PRELOAD_CHECK_YES;
}

static enum preload_check_result check_program(struct exec_scratch *s, const struct call *c)
{
    const char *agent = resolve_own_path();
    if (agent && sys_failed(sys_call(SYS_faccessat, AT_FDCWD, agent, R_OK)))
        return PRELOAD_CHECK_NO_AGENT;
    switch (c->of) {
    case FEXECVE:
        return preload_check_judge_file(&s->check, c->fd);
    case EXECVEAT:
        return c->flags & AT_EMPTY_PATH && !*c->path ? preload_check_judge_file(&s->check, c->fd)
                                                     : preload_check_judge(&s->check, c->fd, c->path);
    case EXECVPE:
    case SPAWNP:
        return check_on_path(s, c->path);
    default:
        return preload_check_judge(&s->check, AT_FDCWD, c->path);
    }
}

/* True if `allium run` records this process, but the process can neither open nor make a directory for ledgers (after
 * chroot(2)). Then the new program's ledger is a memfd, which `allium run` can find only while that program runs. */
static bool lacks_ledger_dir(struct exec_scratch *s)
{
    if (!text_find(process.config.dir, "/" LEDGER_RUN_PREFIX))
        return false;
    long fd = ledger_open_dir(&process.config, s->dir, true);
    if (!sys_failed(fd))
        sys_call(SYS_close, fd);
    return sys_failed(fd);
}

/* ---- the call ---- */

/* Counts a program that may be missing from the recording, and starts it. If the start fails, takes the count back. */
static ONE_COPY int start_counted(const struct call *c, char *const *envp)
{
    process_count_loss(LEDGER_LOST_CHILDREN);
    int result = call_real(c, envp);
    if (result)
        process_uncount_loss(LEDGER_LOST_CHILDREN);
    return result;
}

static int start_observed(struct exec_scratch **s, const struct call *c, char *const *envp)
{
    if (!exec_scratch_reserve(s, preload_env_bytes(&(*s)->env)))
        return start_counted(c, envp);
    char *const *with_agent = preload_env_make(&(*s)->env, (*s)->rest);
    int result = lacks_ledger_dir(*s) ? start_counted(c, with_agent) : call_real(c, with_agent);
    bool too_much = result == E2BIG || (result == -1 && errno == E2BIG);
    return too_much ? start_counted(c, envp) : result; /* without our entries the environment may fit */
}

/* Returns the path of the executed file, for unobserved_note(). If the call has a descriptor and no path, or a path in
 * /proc/self/ that is a link, returns the target of the link. */
static __attribute__((noinline)) const char *path_to_note(struct exec_scratch *s, const struct call *c)
{
    char link[40] = "/proc/self/fd/";
    bool is_fd = !c->path || !*c->path;
    if (!is_fd && !text_starts(c->path, "/proc/self/"))
        return c->path;
    text_from_number(link + text_length(link), (uint64_t)c->fd, 10, 1);
    long n = sys_call(SYS_readlinkat, AT_FDCWD, is_fd ? link : c->path, s->path, sizeof(s->path) - 1);
    s->path[sys_failed(n) ? 0 : n] = '\0';
    return sys_failed(n) && !is_fd ? c->path : s->path; /* /proc/self/root/bin/true is not a link */
}

/* Notes a program that will not be observed (wire/unobserved_list.h), and starts it. A program with an allocator of its
 * own still gets the agent, because the agent passes itself on to the programs that this program starts. */
static int start_unobserved(struct exec_scratch **s, const struct call *c, char *const *envp,
                            enum preload_check_result why)
{
    bool noted = unobserved_note(&process.config, why, path_to_note(*s, c), true);
    if (why != PRELOAD_CHECK_OWN_MALLOC && !noted)
        return start_counted(c, envp);
    int result = why == PRELOAD_CHECK_OWN_MALLOC ? start_observed(s, c, envp) : call_real(c, envp);
    if (result && noted)
        unobserved_note(&process.config, why, path_to_note(*s, c), false);
    return result;
}

/* False: the real function will fail, and return the right error. */
static bool can_succeed(struct exec_scratch *s, const struct call *c, char *const *envp)
{
    size_t length;
    if (c->of == FEXECVE && (!c->argv || !envp)) /* libc's fexecve() refuses NULL; execve(2) accepts it */
        return false;
    if (c->of != FEXECVE && (!readable_text(&s->readable, c->path, PATH_MAX, &length) || length == PATH_MAX))
        return false;
    return preload_env_read(&s->env, &s->readable, envp);
}

static ONE_COPY int run(const struct call *c, char *const *envp)
{
    if (unlikely(!next_exec.execve))
        boot_agent();
    if (!preload_env_is_handed_on())
        return call_real(c, envp);
    /* In a sealed process the agent makes no system call: starts the program without the agent, and counts it. */
    struct exec_scratch *s = load_relaxed(&process.ledger.sealed) ? NULL : exec_scratch_take();
    if (!s)
        return start_counted(c, envp);
    int result;
    if (!can_succeed(s, c, envp))
        result = call_real(c, envp);
    else {
        enum preload_check_result found = check_program(s, c);
        const bool tells = sites_on && c->of < SPAWN;
        if (tells)
            sites->executes(c->path ? c->path : "", 0);
        result =
            found == PRELOAD_CHECK_YES ? start_observed(&s, c, envp) : start_unobserved(&s, c, envp, found);
        if (tells)
            sites->executes("", errno);
    }
    exec_scratch_release(s);
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
    return run(&(struct call){SPAWN, -1, 0, path, argv, pid, actions, attributes}, envp);
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    return run(&(struct call){SPAWNP, -1, 0, file, argv, pid, actions, attributes}, envp);
}

/* Calls run() for execl(), execlp() and execle(). Puts the arguments into an array on the stack, as libc does.
 * `has_environment`: the list ends with the environment, as in execle(). */
static ONE_COPY int run_listed(struct call *c, const char *first, va_list *list, bool has_environment)
{
    va_list counted;
    size_t count = 0, i = 0;
    va_copy(counted, *list);
    for (const char *argument = first; argument; count++)
        argument = va_arg(counted, const char *);
    va_end(counted);
    char **argv = alloca((count + 1) * sizeof(*argv));
    argv[0] = (char *)(uintptr_t)first;
    while (argv[i])
        argv[++i] = va_arg(*list, char *);
    c->argv = argv;
    return run(c, has_environment ? va_arg(*list, char *const *) : environ);
}

EXPORT int execl(const char *path, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    int result = run_listed(&(struct call){.of = EXECVE, .path = path}, first, &list, false);
    va_end(list);
    return result;
}

EXPORT int execlp(const char *file, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    int result = run_listed(&(struct call){.of = EXECVPE, .path = file}, first, &list, false);
    va_end(list);
    return result;
}

EXPORT int execle(const char *path, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    int result = run_listed(&(struct call){.of = EXECVE, .path = path}, first, &list, true);
    va_end(list);
    return result;
}
