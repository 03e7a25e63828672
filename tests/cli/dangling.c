/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that uses what it has freed. Two functions allocate, a third one frees, and the pointers stay. It prints a
 * name and an address to a line:
 *   session  104 bytes by make_session(), freed by drop_session()
 *   field    a byte within them, the twelfth, which is used after that
 *   ticket   41 bytes by make_ticket(), live; the address is that of the last byte but two
 *   slack    the third byte past these 41, which the allocator has given all the same
 *   handed   41 more, freed by sweep() in another thread
 *   grown    5,000 bytes by main(), that grow() has given to realloc
 *   code     no block at all
 * Then it crashes, or, with an argument, waits for its input to end.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct session {
    int number;
    char name[100];
};

struct ticket {
    char text[41];
};

static struct session *volatile current;
static struct ticket *volatile spare, *volatile handed;
static char *volatile text;

__attribute__((noinline)) static struct session *make_session(void)
{
    return calloc(1, sizeof(struct session));
}

__attribute__((noinline)) static struct ticket *make_ticket(void)
{
    return malloc(sizeof(struct ticket));
}

__attribute__((noinline)) static void drop_session(struct session *s)
{
    free(s);
}

__attribute__((noinline)) static void grow(void)
{
    text = realloc(text, 1 << 20);
}

static void *sweep(void *block)
{
    pthread_setname_np(pthread_self(), "sweeper");
    free(block);
    return NULL;
}

static void print_addresses(void)
{
    const struct {
        const char *name;
        const void *address;
    } all[] = {
        {"session", current},
        {"field", &current->name[7]},
        {"ticket", &spare->text[38]},
        {"slack", spare->text + 43},
        {"handed", handed},
        {"grown", text},
        {"code", (void *)print_addresses},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        printf("%s %p\n", all[i].name, all[i].address);
}

int main(int argc, char **argv)
{
    char c;
    pthread_t sweeper;
    (void)argv;
    setvbuf(stdout, NULL, _IOLBF, 0);
    current = make_session();
    spare = make_ticket();
    handed = make_ticket();
    text = malloc(5000);
    print_addresses();
    grow();
    pthread_create(&sweeper, NULL, sweep, handed);
    pthread_join(sweeper, NULL);
    drop_session(current);
    printf("ready -\n");
    while (argc > 1 && read(0, &c, 1) > 0)
        ;
    if (argc > 1)
        return 0;
    current->name[7] = 1;
    raise(SIGSEGV);
    return 0;
}
