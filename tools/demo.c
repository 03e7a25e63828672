/* SPDX-License-Identifier: BSD-2-Clause */

/*
 * What `make demo` observes: a server that is none. Three of its ways with memory are worth seeing: a cache that grows
 * on purpose, a session that nobody closes, and strings that live for a moment only. It ends within a second or two.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS 2000000
#define PAGES    512

struct session {
    struct session *next;
    char user[96];
};

static struct session *sessions;
static char *pages[PAGES];
static size_t bytes_sent;

#define NOT_INLINED __attribute__((noinline))

/* Nothing ever takes a session out of the list again. */
static NOT_INLINED void open_session(int request)
{
    struct session *session = malloc(sizeof *session);
    if (!session)
        return;
    snprintf(session->user, sizeof session->user, "user %d", request);
    session->next = sessions;
    sessions = session;
}

static NOT_INLINED const char *cached_page(int request)
{
    char **page = &pages[request % PAGES];
    if (!*page && (*page = malloc(16 << 10)))
        memset(*page, 'p', 16 << 10);
    return *page ? *page : "";
}

static NOT_INLINED char *format_answer(int request, const char *page)
{
    char *answer = malloc(4096);
    if (answer)
        snprintf(answer, 4096, "request %d: %.2000s", request, page);
    return answer;
}

static NOT_INLINED void handle_request(int request)
{
    char *answer = format_answer(request, cached_page(request));
    if (answer)
        bytes_sent += strlen(answer);
    free(answer);
    if (request % 10 == 0)
        open_session(request);
}

int main(void)
{
    for (int request = 0; request < REQUESTS; request++)
        handle_request(request);
    printf("served %d requests, %zu bytes\n", REQUESTS, bytes_sent);
    return 0;
}
