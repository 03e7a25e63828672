/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/command.h"

#define HELD_BYTES_MAX (1u << 20) /* more than that is not shown again where the pager cannot run */
#define ROWS_UNKNOWN   24
#define COLUMNS_LEAST  20

static struct {
    const char *command;
    FILE *stream;    /* what is written into; NULL: no pager comes into question */
    struct buf text; /* until it is whole or too long to be held */
    bool whole;      /* `text` has all that was written */
    unsigned rows, columns;
    unsigned row, column; /* of the cursor */
    bool escape;          /* within a sequence that moves nothing */
    pid_t pid;            /* 0: not started */
    int fd;
    struct sigaction on_pipe;
} pager;

/* Where the cursor would stand. Sequences are those for colours, which end with a letter. */
static bool exceeds_terminal(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (pager.escape) {
            pager.escape = !(c >= 'A' && c <= 'z' && c != '[');
        } else if (c == '\033') {
            pager.escape = true;
        } else if (c == '\n') {
            pager.row++;
            pager.column = 0;
        } else if ((c & 0xc0) != 0x80 && ++pager.column > pager.columns) {
            pager.row++;
            pager.column = 1;
        }
    }
    return pager.row >= pager.rows;
}

static int write_all(const char *text, size_t len)
{
    while (len) {
        ssize_t n = write(pager.fd, text, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        text += n;
        len -= (size_t)n;
    }
    return 0;
}

/* ^C is for the pager. Who catches it goes on catching it, as often as it comes. */
static void leave_interrupts(void)
{
    struct sigaction a;
    if (sigaction(SIGINT, NULL, &a))
        return;
    if (a.sa_handler == SIG_DFL)
        a.sa_handler = SIG_IGN;
    a.sa_flags &= ~(int)SA_RESETHAND;
    sigaction(SIGINT, &a, NULL);
    signal(SIGQUIT, SIG_IGN);
}

static void run_pager(int from)
{
    dup2(from, STDIN_FILENO);
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    setenv("LESS", "FRX", 0);
    setenv("LV", "-c", 0);
    execl("/bin/sh", "sh", "-c", pager.command, (char *)NULL);
    _exit(127);
}

/* False, and everything goes to stdout: there is no process to be had. */
static bool start(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return false;
    signal(SIGCHLD, SIG_DFL); /* who starts us with it ignored leaves us no status */
    pager.pid = fork();
    if (!pager.pid)
        run_pager(ends[0]);
    close(ends[0]);
    if (pager.pid < 0) {
        close(ends[1]);
        pager.pid = 0;
        return false;
    }
    pager.fd = ends[1];
    leave_interrupts();
    return true;
}

static void hold(const char *text, size_t len)
{
    pager.whole = pager.whole && pager.text.len + len <= HELD_BYTES_MAX;
    if (pager.whole || !pager.pid)
        buf_add(&pager.text, text, len);
}

static ssize_t take(void *cookie, const char *text, size_t len)
{
    (void)cookie;
    bool was_running = pager.pid;
    hold(text, len);
    if (!was_running && !(exceeds_terminal(text, len) && start()))
        return (ssize_t)len;
    if (was_running ? write_all(text, len) : write_all(pager.text.data, pager.text.len))
        return 0; /* errno says why */
    return (ssize_t)len;
}

/* In the directories of PATH. */
static bool is_command(const char *name)
{
    const char *path = getenv("PATH");
    bool found = false;
    for (; path && *path && !found;
         path += path[strcspn(path, ":")] ? strcspn(path, ":") + 1 : strcspn(path, ":")) {
        struct buf file = BUF_INIT;
        buf_add(&file, path, strcspn(path, ":"));
        buf_printf(&file, "/%s", name);
        found = !access(buf_str(&file), X_OK);
        buf_release(&file);
    }
    return found;
}

/* NULL: none. */
static const char *command_of_user(void)
{
    const char *command = getenv("PAGER"), *term = getenv("TERM");
    if (!isatty(STDOUT_FILENO) || !term || !*term || !strcmp(term, "dumb"))
        return NULL;
    if (!command)
        return is_command("less") ? "less" : NULL;
    return *command && strcmp(command, "cat") ? command : NULL;
}

struct sink pager_sink(bool wanted)
{
    struct winsize size = {0};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    pager.command = wanted ? command_of_user() : NULL;
    if (pager.command)
        pager.stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = take});
    if (!pager.stream)
        return sink_to_file(stdout);
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    pager.rows = size.ws_row ? size.ws_row : ROWS_UNKNOWN;
    pager.columns = size.ws_col >= COLUMNS_LEAST ? size.ws_col : UINT32_MAX;
    pager.whole = true;
    sigaction(SIGPIPE, &ignore, &pager.on_pipe);
    return sink_to_file(pager.stream);
}

/* True: it could not be run at all. */
static bool wait_for_pager(void)
{
    int status = 0;
    close(pager.fd);
    while (waitpid(pager.pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 127);
}

int pager_written(struct sink *out, int code)
{
    if (!pager.stream)
        return command_written(out, code);
    struct sink rest = sink_to_file(stdout);
    int bad = sink_finish(out);
    fclose(pager.stream);
    bool failed = pager.pid && wait_for_pager();
    if (failed)
        command_fail(0, "the pager %s could not be run: set PAGER to another, or use --no-pager",
                     pager.command);
    if (failed && !pager.whole)
        code = EXIT_FAILED;
    if (!pager.pid || (failed && pager.whole))
        sink_write(&rest, pager.text.data, pager.text.len);
    sigaction(SIGPIPE, &pager.on_pipe, NULL);
    buf_release(&pager.text);
    if (bad && bad != -EPIPE)
        return command_fail(EXIT_FAILED, "cannot write: %s", strerror(-bad));
    return command_written(&rest, code);
}
