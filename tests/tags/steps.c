/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does what it is told, line by line, and answers each with a line. Built with -include allium/malloc_hooks.h.
 *
 *     make PLACE N BYTES   so many objects of so many bytes at a place (a, b, c); answer: how many there came of it
 *     drop PLACE N         frees that many of them, the newest first; answer: how many
 *     fork                 goes on as a child until `end`; answer: its pid
 *     end                  a child ends; answer: its code
 *     open PATH            loads a plugin; answer: 1, it was
 *     close                the one loaded last goes; answer: 1, it did
 *     call NAME N BYTES    so many objects by that function of it; answer: how many there came of it. They are never
 *                          freed
 *     exec PATH            becomes that program
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACES  3
#define OBJECTS 100000

static void *objects[PLACES][OBJECTS];
static unsigned live[PLACES];

#define PLACE(name) static __attribute__((noinline)) void *name(size_t n)
PLACE(at_a)
{
    return malloc(n);
}
PLACE(at_b)
{
    return calloc(1, n);
}
PLACE(at_c)
{
    return realloc(NULL, n);
}

static unsigned make(unsigned place, unsigned n, size_t bytes)
{
    static void *(*const at[PLACES])(size_t) = {at_a, at_b, at_c};
    unsigned made = 0;
    while (n--) {
        void *p = at[place](bytes);
        if (p)
            objects[place][live[place]++] = p;
        made += p != NULL;
    }
    return made;
}

static unsigned drop(unsigned place, unsigned n)
{
    unsigned dropped = 0;
    for (; dropped < n && live[place]; dropped++)
        free(objects[place][--live[place]]);
    return dropped;
}

static int split(void)
{
    pid_t pid = fork();
    int code;
    if (!pid)
        return getpid();
    waitpid(pid, &code, 0);
    return code;
}

static void *plugin;

static int call(const char *name, unsigned n, size_t bytes)
{
    void *(*make_one)(size_t);
    int made = 0;
    *(void **)&make_one = plugin ? dlsym(plugin, name) : NULL;
    while (make_one && n--)
        made += make_one(bytes) != NULL;
    return make_one ? made : -1;
}

static int load(const char *path)
{
    plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return plugin != NULL;
}

/* The child has all that its parent has, until a line comes. */
static int borrow(void)
{
    pid_t pid = vfork();
    char c;
    if (!pid) {
        if (write(1, "0\n", 2) == 2)
            while (read(0, &c, 1) == 1 && c != '\n')
                ;
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    return pid;
}

int main(void)
{
    char line[500], word[400], place;
    unsigned n;
    size_t bytes;
    setvbuf(stdin, NULL, _IONBF, 0);
    while (fgets(line, sizeof(line), stdin)) {
        int answer = -1;
        if (sscanf(line, "make %c %u %zu", &place, &n, &bytes) == 3)
            answer = (int)make((unsigned)(place - 'a'), n, bytes);
        else if (sscanf(line, "drop %c %u", &place, &n) == 2)
            answer = (int)drop((unsigned)(place - 'a'), n);
        else if (sscanf(line, "call %399s %u %zu", word, &n, &bytes) == 3)
            answer = call(word, n, bytes);
        else if (sscanf(line, "open %399s", word) == 1)
            answer = load(word);
        else if (sscanf(line, "exec %399s", word) == 1)
            answer = execl(word, word, (char *)NULL);
        else if (sscanf(line, "%9s", word) == 1 && !strcmp(word, "close"))
            answer = plugin && !dlclose(plugin);
        else if (sscanf(line, "%9s", word) == 1 && !strcmp(word, "fork"))
            answer = split();
        else if (!strcmp(word, "vfork"))
            answer = borrow();
        else
            return 0;
        printf("%d\n", answer);
        fflush(stdout);
    }
    return 0;
}
