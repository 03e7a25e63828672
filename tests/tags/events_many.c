/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * events_many KINDS ROUNDS LABELS [N]: writes ROUNDS times an event of each of KINDS kinds, as allium_emit() does. The
 * kinds are made at run time; LABELS labels make their descriptions long. With N, vfork children write the last kind N
 * times, each on another CPU than its parent, where a thread does the same; the sum of these is printed.
 */
#include <allium/event.h>

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 4

static struct allium_event *events, *last;
static unsigned long made, each;
static bool ends;

static void emit(struct allium_event *event, unsigned n)
{
    if (allium_event_is_on(event))
        allium_event_put_1(event, n);
}

static void make_kinds(int kinds, int n_labels)
{
    static struct allium_event_field field;
    struct allium_event_label *labels = calloc((size_t)n_labels + 1, sizeof(*labels));
    char(*names)[24] = calloc((size_t)kinds + (size_t)n_labels + 1, sizeof(*names));
    events = calloc((size_t)kinds + 1, sizeof(*events));
    if (!events || !labels || !names)
        exit(1);
    for (int i = 0; i < n_labels; i++, names++) {
        snprintf(*names, sizeof(*names), "L%04d", i);
        labels[i] = (struct allium_event_label){*names, i};
    }
    field = (struct allium_event_field){"n", n_labels ? ALLIUM_TYPE_ENUM : ALLIUM_TYPE_UNSIGNED, 4, labels,
                                        (unsigned)n_labels};
    for (int k = 0; k < kinds; k++, names++) {
        snprintf(*names, sizeof(*names), "many:k%04d", k);
        events[k] = (struct allium_event){ALLIUM_EVENT_VERSION, 0, 0, 1, 0, *names, &field};
        last = &events[k];
    }
}

/* Puts the thread, or the child, onto one CPU. */
static void pin(long cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)(cpu % sysconf(_SC_NPROCESSORS_ONLN)), &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static void *emit_until_end(void *arg)
{
    pin(0);
    for (; !__atomic_load_n(&ends, __ATOMIC_RELAXED); made++)
        emit(last, 0);
    return arg;
}

static __attribute__((noinline)) void be_child(void)
{
    pin(1);
    for (unsigned long i = 0; i < each; i++)
        emit(last, 0);
    _exit(0);
}

static void emit_in_children(void)
{
    pthread_t thread;
    pin(0);
    pthread_create(&thread, NULL, emit_until_end, NULL);
    for (int i = 0; i < CHILDREN; i++) {
        const pid_t child = vfork();
        if (!child)
            be_child();
        waitpid(child, NULL, 0);
    }
    __atomic_store_n(&ends, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    printf("%lu\n", made + CHILDREN * each);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    const int kinds = atoi(argv[1]), rounds = atoi(argv[2]);
    make_kinds(kinds, atoi(argv[3]));
    for (int round = 0; round < rounds; round++)
        for (int k = 0; k < kinds; k++)
            emit(&events[k], (unsigned)round);
    each = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
    if (each)
        emit_in_children();
    return 0;
}
