/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that uses what it has freed. Two functions allocate, a third one frees, and the pointers stay. It prints a name
 * and an address to a line:
 *   session  104 bytes by make_session(), freed by drop_session()
 *   field    a byte within them, the twelfth, which is used after that
 *   ticket   41 bytes by make_ticket(), live; the address is that of its last byte but two
 *   slack    the third byte past these 41, which the allocator has given all the same
 *   grown    5,000 bytes that realloc took back from grow()
 * Then it crashes, or, with an argument, waits for its input to end.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct session {
    int number;
    char name[100];
};

struct ticket {
    char text[41];
};

static struct session *volatile current;
static struct ticket *volatile spare;
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

int main(int argc, char **argv)
{
    char c;
    (void)argv;
    setvbuf(stdout, NULL, _IOLBF, 0);
    current = make_session();
    spare = make_ticket();
    text = malloc(5000);
    char *before = text;
    printf("session %p\nfield %p\nticket %p\nslack %p\ngrown %p\n", (void *)current,
           (void *)&current->name[7], (void *)&spare->text[38], (void *)(spare->text + 43), (void *)before);
    grow();
    drop_session(current);
    printf("ready -\n");
    if (argc > 1) {
        while (read(0, &c, 1) > 0)
            ;
        return 0;
    }
    if (current->name[7] || !current->number)
        raise(SIGSEGV);
    return 0;
}
