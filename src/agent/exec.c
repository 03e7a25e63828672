/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/exec.h"

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

#include "agent/cold.h"
#include "agent/resolve.h"
#include "base/sigsafe/sys.h"
#include "base/sigsafe/text.h"
#include "wire/unobserved.h"

/*
 * LD_PRELOAD and our settings are inherited through the environment. Before our target executes a file we look whether
 * the program in it can carry the agent; if not, it gets an environment without us, made on the stack of the caller:
 * it may be a vfork child or a signal handler. What calls exec inside libc (system, popen) starts a shell, which can.
 */

#define ENTRIES_MAX 4096u /* of an environment: 32 KiB of stack */
#define PRELOAD_MAX 4096u
#define PATH_BYTES  1024u

static const char agent_name[] = "liballium-agent.so";
static const char preload_name[] = "LD_PRELOAD=", settings_name[] = "ALLIUM_";

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

static int go(const struct call *c, char *const *envp)
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

/* ---- the environment ---- */

/* Is the first of the list's entries, of `length` bytes, the agent? */
static bool is_agent(const char *entry, size_t length)
{
    size_t name = sizeof(agent_name) - 1;
    return length >= name && text_starts(entry + length - name, agent_name) &&
           (length == name || entry[length - name - 1] == '/');
}

static size_t entry_length(const char *list)
{
    size_t n = 0;
    while (list[n] && list[n] != ':' && list[n] != ' ')
        n++;
    return n;
}

unsigned long exec_leave_preload(char *list)
{
    char *to = list;
    for (const char *from = list; *from;) {
        size_t length = entry_length(from), whole = length + (from[length] != '\0');
        if (!is_agent(from, length))
            for (size_t i = 0; i < whole; i++)
                *to++ = from[i];
        from += whole;
    }
    *to = '\0';
    return (unsigned long)(to - list);
}

static bool preload_has_us(const char *list)
{
    for (size_t length; *list; list += length + (list[length] != '\0')) {
        length = entry_length(list);
        if (is_agent(list, length))
            return true;
    }
    return false;
}

/* Our LD_PRELOAD among these entries, or NULL: then nothing need be done. Counts them all. */
static const char *find_us(char *const *envp, size_t *entries)
{
    const char *found = NULL;
    *entries = 0;
    for (; envp && envp[*entries]; ++*entries) {
        const char *value = envp[*entries] + sizeof(preload_name) - 1;
        if (text_starts(envp[*entries], preload_name) && preload_has_us(value))
            found = value;
    }
    return found;
}

static int go_without_us(const struct call *c, char *const *envp, const char *preload, size_t entries)
{
    char **kept = alloca((entries + 1) * sizeof(*kept));
    char *others = alloca(sizeof(preload_name) + text_length(preload));
    size_t n = 0, name = sizeof(preload_name) - 1;
    text_join(others, sizeof(preload_name) + text_length(preload), preload_name, preload);
    bool alone = !exec_leave_preload(others + name);
    for (size_t i = 0; i < entries; i++) {
        if (envp[i] + name == preload && alone)
            continue;
        if (!text_starts(envp[i], settings_name))
            kept[n++] = envp[i] + name == preload ? others : envp[i];
    }
    kept[n] = NULL;
    return go(c, kept);
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
        return carrier_judge(AT_FDCWD, name);
    for (const char *dir = search_path(); *name; dir++) {
        size_t n = 0;
        for (; *dir && *dir != ':'; dir++)
            if (n + 2 < sizeof(path))
                path[n++] = *dir;
        if (n)
            path[n++] = '/';
        text_copy(path + n, sizeof(path) - n, name);
        if (is_program(path))
            return carrier_judge(AT_FDCWD, path);
        if (!*dir)
            break;
    }
    return CARRIER_YES;
}

static enum carrier judge(const struct call *c)
{
    const char *agent = resolve_own_path();
    if (agent && sys_failed(sys_call(SYS_faccessat, AT_FDCWD, agent, R_OK)))
        return CARRIER_NO_AGENT;
    switch (c->of) {
    case FEXECVE:
        return carrier_judge_file(c->fd);
    case EXECVEAT:
        return c->flags & AT_EMPTY_PATH && !*c->path ? carrier_judge_file(c->fd)
                                                     : carrier_judge(c->fd, c->path);
    case EXECVPE:
    case SPAWNP:
        return judge_on_path(c->path);
    default:
        return carrier_judge(AT_FDCWD, c->path);
    }
}

static int run(const struct call *c, char *const *envp)
{
    size_t entries;
    if (unlikely(!next_exec.execve))
        boot_agent();
    const char *preload = find_us(envp, &entries);
    /* After seccomp nothing more may be asked of the kernel: the child is under the same filter, so without us. */
    bool sealed = load_relaxed(&process.ledger.sealed);
    if (!preload || entries > ENTRIES_MAX || text_length(preload) > PRELOAD_MAX)
        return go(c, envp);
    enum carrier found = sealed ? CARRIER_SEALED : judge(c);
    if (found == CARRIER_YES)
        return go(c, envp);
    const char *path = c->path ? c->path : "";
    bool noted = !sealed && unobserved_note(&process.config, found, path, true);
    if (!noted)
        process_count_loss(LEDGER_LOST_CHILDREN);
    int result = go_without_us(c, envp, preload, entries);
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
