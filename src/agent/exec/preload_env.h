/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_PRELOAD_ENV_H
#define AGENT_PRELOAD_ENV_H

/*
 * The agent's entries in the environment. The program does not see them: they are taken out of the array before its
 * first line runs, and put into the environment of the programs it starts, if these can carry the agent (exec.c).
 *
 * Runs in: target. Threads: any, vfork children and signal handlers included; no malloc.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"
#include "base/sigsafe/readable.h"

/** Is `entry`, NAME=VALUE, one of the agent's settings? Stores its value. */
typedef bool (*environment_setting_fn)(char *entry);

/**
 * Takes the agent's entries out of the environment as the kernel laid it out. Returns the auxiliary vector behind it,
 * or NULL. Once, from boot: libc's `environ` may not be set yet.
 */
ONE_COPY const void *preload_env_take_out(environment_setting_fn is_setting);
/** Children go without the agent: nothing is put into their environment. */
void preload_env_forget(void);
/** There is something to put in. */
bool preload_env_is_handed_on(void);

/* An environment that a program hands to another one. */
struct preload_env {
    char *const *entries; /* NULL: none */
    size_t count;
    size_t preload_at; /* its last LD_PRELOAD, which is the one that the loader heeds; `count`: it has none */
    size_t preload_length; /* of the list */
    bool has_agent;        /* in that list */
    uint32_t given;        /* bit k: it sets the agent's setting k itself */
};

/** Reads an environment. False: execve() refuses it, because it cannot be read or is too large. */
ONE_COPY bool preload_env_read(struct preload_env *env, struct readable *r, char *const *envp);
/** Bytes that preload_env_make() needs. */
size_t preload_env_bytes(const struct preload_env *env);
/** Makes the same environment with the agent's entries, in `room`. Settings that it has itself stay its own. */
ONE_COPY char *const *preload_env_make(const struct preload_env *env, void *room);

#endif
