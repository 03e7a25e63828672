/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_PRELOAD_ENV_H
#define AGENT_PRELOAD_ENV_H

/*
 * The agent's entries in the environment: its path in LD_PRELOAD, and its settings (ALLIUM_*). The program does not see
 * them: the agent removes them before main(), and adds them to the environment of each program that this program starts
 * and that can run with the agent (exec.c).
 *
 * Runs in: target. Threads: any, vfork children and signal handlers included; no malloc.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sigsafe/compiler.h"
#include "base/sigsafe/readable.h"

/** Returns whether `entry`, NAME=VALUE, is a setting of the agent, and is to be removed. Stores the value. */
typedef bool (*environment_setting_fn)(char *entry);

/**
 * Removes the agent's entries from the environment on the initial stack (libc's `environ` may not be set yet), and
 * keeps them for preload_env_make(). Returns the auxiliary vector behind the environment; NULL: the initial stack is
 * unknown. Called once, when the agent is initialised.
 */
ONE_COPY const void *preload_env_take_out(environment_setting_fn is_setting);
/** The settings that were removed, "NAME=VALUE", behind them NULL. */
#define PRELOAD_ENV_SETTINGS_MAX 8u
extern char *preload_env_settings[PRELOAD_ENV_SETTINGS_MAX] __attribute__((visibility("hidden")));
/** From now on, programs that this program starts do not get the agent. */
void preload_env_forget(void);
/** Returns whether programs that this program starts get the agent. */
bool preload_env_is_handed_on(void);

/* The environment that this program passes to a program that it starts. */
struct preload_env {
    char *const *entries; /* the array that ends with NULL; NULL: there is no array */
    size_t count;
    size_t preload_at;     /* index of the last LD_PRELOAD, which the loader uses; `count`: there is none */
    size_t preload_length; /* bytes of the list in LD_PRELOAD */
    bool has_agent;        /* the list in LD_PRELOAD already has the agent */
    uint32_t given;        /* bit k: the environment already has setting k of the agent */
};

/** Reads an environment. False: it cannot be read or is too large, so that execve() will fail. */
ONE_COPY bool preload_env_read(struct preload_env *env, struct readable *r, char *const *envp);
/** Returns how many bytes preload_env_make() needs in `room`. */
size_t preload_env_bytes(const struct preload_env *env);
/**
 * Makes a copy of the array in `room`, adds the agent's entries, and returns the copy. If the environment already has a
 * setting of the agent, this setting keeps its value.
 */
ONE_COPY char *const *preload_env_make(const struct preload_env *env, void *room);

#endif
