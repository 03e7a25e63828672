/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What `make demo` observes: a server that is none. It has three ways with memory that are worth seeing: sessions that
 * nobody closes (a slow leak), a cache that only grows, and answers that live for a moment. It counts what it asks for,
 * and in the end writes that to the file $DEMO_TRUTH, or to stdout: lines of a function's name and bytes. Takes 2 s.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS     200
#define REQUESTS   1000 /* a round */
#define PAUSE_NS   8000000
#define PAGES      6000
#define PAGE_BYTES 16384

struct session {
    struct session *next;
    char user[];
};

static struct session *sessions;
static char *pages[PAGES];
static size_t leaked_bytes, cached_bytes, answered_bytes, sent;

#define NOT_INLINED __attribute__((noinline))

static void *allocate_or_die(void *p)
{
    if (!p) {
        fprintf(stderr, "demo: out of memory\n");
        exit(1);
    }
    return p;
}

/* Nothing ever takes a session out of the list again. */
static NOT_INLINED void open_session(int request)
{
    size_t bytes = sizeof(struct session) + 100 + (size_t)(request * 7 % 400);
    struct session *session = allocate_or_die(malloc(bytes));
    snprintf(session->user, bytes - sizeof(*session), "user %d", request);
    session->next = sessions;
    sessions = session;
    leaked_bytes += bytes;
}

/* Every page that was ever asked for is kept. */
static NOT_INLINED const char *cached_page(int number)
{
    char **page = &pages[number];
    if (!*page) {
        *page = memset(allocate_or_die(malloc(PAGE_BYTES)), 'p', PAGE_BYTES);
        cached_bytes += PAGE_BYTES;
    }
    return *page;
}

static NOT_INLINED char *format_answer(int request, const char *page)
{
    size_t bytes = 1000 + (size_t)(request * 31 % 8000);
    char *answer = allocate_or_die(malloc(bytes));
    snprintf(answer, bytes, "request %d: %.900s", request, page);
    answered_bytes += bytes;
    return answer;
}

static NOT_INLINED void handle_request(int request)
{
    if (request % 2 == 0)
        open_session(request);
    char *answer = format_answer(request, cached_page(request / 40 % PAGES));
    sent += strlen(answer);
    free(answer);
}

int main(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    const char *path = getenv("DEMO_TRUTH");
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < REQUESTS; i++)
            handle_request(round * REQUESTS + i);
        nanosleep(&pause, NULL);
    }
    printf("served %d requests, %zu bytes\n", ROUNDS * REQUESTS, sent);
    FILE *truth = path ? fopen(path, "w") : stdout;
    if (!truth)
        return 1;
    fprintf(truth, "open_session %zu\ncached_page %zu\nformat_answer %zu\n", leaked_bytes, cached_bytes,
            answered_bytes);
    return truth != stdout && fclose(truth) ? 1 : 0;
}
