/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_PRELOAD_ENV_H
#define AGENT_PRELOAD_ENV_H

/*
 * Our entries in the environment. The program does not see them: they are taken out of the array before its first line
 * runs, and put into the environment of what it starts, if that can carry the agent (exec.c).
 *
 * Runs in: target. Threads: any, vfork children and signal handlers included; no malloc.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/sigsafe/compiler.h"

/** One of our settings? `entry` is NAME=VALUE; takes over what it says. */
typedef bool (*environment_setting_fn)(char *entry);

/**
 * Goes through the environment as the kernel laid it out and takes our entries out; the auxiliary vector behind it, or
 * NULL. Once, from boot: libc's `environ` may not be set yet.
 */
ONE_COPY const void *preload_env_take_out(environment_setting_fn is_setting);
/** Children go without us: nothing is put into their environment. */
void preload_env_forget(void);
/** There is something to put in. */
bool preload_env_is_handed_on(void);

/** What preload_env_put_in() needs for an environment: pointers, and bytes of text. False: too much for a stack. */
ONE_COPY bool preload_env_room(char *const *envp, size_t *pointers, size_t *bytes);
/** The same environment with our entries. Of those that it has itself, it keeps its own. */
ONE_COPY void preload_env_put_in(char *const *envp, char **pointers, char *text);

#endif
