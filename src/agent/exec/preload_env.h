/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_PRELOAD_ENV_H
#define AGENT_PRELOAD_ENV_H

/*
 * The agent's entries in the environment: itself in LD_PRELOAD, and its settings. The program does not see them: the
 * agent removes them from the array before main(), and adds them to the environment of each program that this one
 * starts and that can carry the agent (exec.c).
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
 * Removes the agent's entries from the environment on the initial stack, because libc's `environ` may not be set yet.
 * Returns the auxiliary vector behind the environment, or NULL. Called once, when the agent is initialised.
 */
ONE_COPY const void *preload_env_take_out(environment_setting_fn is_setting);
/** From now on, programs that this one starts do not get the agent. */
void preload_env_forget(void);
/** Do programs that this one starts get the agent? */
bool preload_env_is_handed_on(void);

/* An environment for a program that this one starts. */
struct preload_env {
    char *const *entries; /* NULL: none */
    size_t count;
    size_t preload_at;     /* index of the last LD_PRELOAD, which the loader uses; `count`: there is none */
    size_t preload_length; /* of the list in LD_PRELOAD */
    bool has_agent;        /* in that list */
    uint32_t given;        /* bit k: the environment already has setting k of the agent */
};

/** Reads an environment. False: it cannot be read or is too large, so that execve() will fail. */
ONE_COPY bool preload_env_read(struct preload_env *env, struct readable *r, char *const *envp);
/** Bytes that preload_env_make() needs. */
size_t preload_env_bytes(const struct preload_env *env);
/**
 * Makes a copy of the environment with the agent's entries, in `room`. Settings in the environment keep their values.
 */
ONE_COPY char *const *preload_env_make(const struct preload_env *env, void *room);

#endif
