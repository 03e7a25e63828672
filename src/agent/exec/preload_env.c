/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/exec/preload_env.h"

#include "base/sigsafe/compiler.h"
#include "base/sigsafe/str.h"

#define SETTINGS_MAX PRELOAD_ENV_SETTINGS_MAX
#define ENTRY_BYTES  1024u
#define ENTRIES_MAX  (1u << 20)   /* more than execve() accepts: it takes 6 MiB of pointers and texts */
#define NAMES_MAX    32u          /* the first bytes of an entry, which must be readable: its name */
#define LIST_MAX     (128u << 10) /* bytes of LD_PRELOAD's list: the kernel refuses more (MAX_ARG_STRLEN) */

static const char preload_name[] = "LD_PRELOAD=";
#define NAME_BYTES (sizeof(preload_name) - 1)

static char own_entry[ENTRY_BYTES]; /* the agent's entry of LD_PRELOAD; "": children do not get the agent */
static unsigned entries_before;     /* number of entries of LD_PRELOAD before own_entry */
char *preload_env_settings[SETTINGS_MAX];
static unsigned n_settings;

extern void *__libc_stack_end; /* points to argc; argv, envp and the auxiliary vector follow */

/* Is `name` the last component of the path, which has `length` bytes? */
static bool has_name(const char *path, size_t length, const char *name)
{
    size_t tail = text_length(name);
    return length >= tail && text_starts(path + length - tail, name) &&
           (length == tail || path[length - tail - 1] == '/');
}

/* Is the entry, which has `length` bytes, the path of one of the two agents? */
static bool is_agent(const char *entry, size_t length)
{
    return has_name(entry, length, "liballium-agent.so") ||
           has_name(entry, length, "liballium-agent-full.so");
}

static ONE_COPY size_t entry_length(const char *list)
{
    size_t n = 0;
    while (list[n] && list[n] != ':' && list[n] != ' ')
        n++;
    return n;
}

/* Returns the rest of the list, behind its first entry. */
static char *rest_of(char *list)
{
    size_t length = entry_length(list);
    return list + length + (list[length] != '\0');
}

/* Returns the agent's entry in the list of an LD_PRELOAD, and counts the entries before it. NULL: there is no agent. */
static ONE_COPY char *find_agent(char *list, unsigned *before)
{
    for (*before = 0; *list; list = rest_of(list), ++*before)
        if (is_agent(list, entry_length(list)))
            return list;
    return NULL;
}

static bool is_separator(char c)
{
    return c == ':' || c == ' ';
}

/*
 * Removes the agent from the list, in place. Returns whether to remove the variable: the list is empty now. But if the
 * list ended in a separator, the variable was empty before the agent was added, and stays: see make_preload().
 */
static bool remove_agent(char *list)
{
    unsigned before;
    size_t bytes = text_length(list);
    bool separated = bytes && is_separator(list[bytes - 1]);
    for (char *at; (at = find_agent(list, &before));) {
        size_t length = entry_length(at);
        if (!*own_entry && length < ENTRY_BYTES) {
            text_copy(own_entry, length + 1, at);
            entries_before = before;
        }
        char *from = rest_of(at);
        if (!*from && at > list)
            at--; /* also removes the separator before it */
        while ((*at++ = *from++))
            ;
    }
    return !*list && !separated;
}

const void *preload_env_take_out(environment_setting_fn is_setting)
{
    char **word = (char **)__libc_stack_end, **kept;
    unsigned ignored;
    if (!word)
        return NULL;
    word += 1 + *(const long *)word + 1; /* skips argc, argv and the NULL behind argv */
    for (kept = word; *word; word++) {
        bool preload = text_starts(*word, preload_name) && find_agent(*word + NAME_BYTES, &ignored);
        if (preload ? remove_agent(*word + NAME_BYTES) : is_setting(*word)) {
            if (!preload && n_settings < SETTINGS_MAX)
                preload_env_settings[n_settings++] = *word;
            continue;
        }
        *kept++ = *word;
    }
    /* A library that reads the auxiliary vector behind the environment finds these NULLs (AT_NULL: the end) instead. */
    while (kept < word)
        *kept++ = NULL;
    return word + 1;
}

void preload_env_forget(void)
{
    own_entry[0] = '\0';
}

bool preload_env_is_handed_on(void)
{
    return own_entry[0];
}

/* Do both entries set the same variable? */
static bool same_name(const char *a, const char *b)
{
    while (*a == *b && *a && *a != '=')
        a++, b++;
    return *a == '=' && *b == '=';
}

static void read_entry(struct preload_env *env, char *entry)
{
    if (text_starts(entry, preload_name))
        env->preload_at = env->count;
    for (unsigned k = 0; k < n_settings; k++)
        if (same_name(entry, preload_env_settings[k]))
            env->given |= 1u << k;
}

/* The length of the array is unknown until its NULL is found: so each pointer is tested before it is read. */
static bool read_entries(struct preload_env *env, struct readable *r)
{
    size_t ignored;
    for (char *const *at = env->entries; at; at++, env->count++) {
        if (!readable_bytes(r, at, sizeof(*at)) || env->count == ENTRIES_MAX)
            return false;
        if (!*at)
            return true;
        if (!readable_text(r, *at, NAMES_MAX, &ignored))
            return false;
        read_entry(env, *at);
    }
    return true;
}

bool preload_env_read(struct preload_env *env, struct readable *r, char *const *envp)
{
    unsigned ignored;
    *env = (struct preload_env){.entries = envp, .preload_at = SIZE_MAX};
    if (!read_entries(env, r))
        return false;
    if (env->preload_at == SIZE_MAX) {
        env->preload_at = env->count;
        return true;
    }
    char *list = envp[env->preload_at] + NAME_BYTES;
    if (!readable_text(r, list, LIST_MAX, &env->preload_length) || env->preload_length == LIST_MAX)
        return false;
    env->has_agent = find_agent(list, &ignored) != NULL;
    return true;
}

static size_t pointer_bytes(const struct preload_env *env)
{
    return (env->count + SETTINGS_MAX + 2) * sizeof(char *);
}

size_t preload_env_bytes(const struct preload_env *env)
{
    return pointer_bytes(env) + NAME_BYTES + text_length(own_entry) + env->preload_length + 3;
}

/*
 * Writes LD_PRELOAD= and the list with the agent in it, behind `entries_before` entries (if there are fewer: at the
 * end). `list` NULL: the program has no LD_PRELOAD. If its LD_PRELOAD is empty, a separator follows the agent.
 */
static void make_preload(char *text, char *list)
{
    static char none[1];
    char *from = list ? list : none;
    bool empty = list && !*list;
    for (unsigned i = 0; *from && i < entries_before; i++)
        from = rest_of(from);
    size_t length = text_copy(text, NAME_BYTES + 1, preload_name), ahead = list ? (size_t)(from - list) : 0;
    length += text_copy(text + length, ahead + 1, list ? list : none);
    if (ahead && !*from)
        text[length++] = ':'; /* the list has no separator behind its last entry */
    length += text_copy(text + length, ENTRY_BYTES, own_entry);
    if (*from || empty)
        text[length++] = ':';
    text_copy(text + length, text_length(from) + 1, from);
}

char *const *preload_env_make(const struct preload_env *env, void *room)
{
    char **pointers = room, *text = (char *)room + pointer_bytes(env);
    size_t n = env->count;
    for (size_t i = 0; i < n; i++)
        pointers[i] = env->entries[i];
    for (unsigned k = 0; k < n_settings; k++)
        if (!(env->given >> k & 1))
            pointers[n++] = preload_env_settings[k];
    if (env->preload_at == env->count)
        pointers[n++] = text;
    else if (!env->has_agent)
        pointers[env->preload_at] = text;
    make_preload(text, env->preload_at < env->count ? env->entries[env->preload_at] + NAME_BYTES : NULL);
    pointers[n] = NULL;
    return pointers;
}
