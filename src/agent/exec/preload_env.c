/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/exec/preload_env.h"

#include "base/sigsafe/compiler.h"
#include "base/sigsafe/str.h"

#define SETTINGS_MAX 8u
#define ENTRY_BYTES  1024u
#define ENTRIES_MAX  4096u /* of an environment that is copied: 32 KiB of stack */

static const char agent_name[] = "liballium-agent.so", preload_name[] = "LD_PRELOAD=";
#define NAME_BYTES (sizeof(preload_name) - 1)

static char own_entry[ENTRY_BYTES]; /* ours in LD_PRELOAD; "": nothing is handed on */
static unsigned entries_before;     /* it in the list */
static char *settings[SETTINGS_MAX];
static unsigned n_settings;

extern void *__libc_stack_end; /* at process entry: argc, argv, envp, auxv */

/* Is the first of the list's entries, of `length` bytes, the agent? */
static bool is_agent(const char *entry, size_t length)
{
    size_t name = sizeof(agent_name) - 1;
    return length >= name && text_starts(entry + length - name, agent_name) &&
           (length == name || entry[length - name - 1] == '/');
}

static ONE_COPY size_t entry_length(const char *list)
{
    size_t n = 0;
    while (list[n] && list[n] != ':' && list[n] != ' ')
        n++;
    return n;
}

/* What follows the first entry of a list. */
static char *behind(char *list)
{
    size_t length = entry_length(list);
    return list + length + (list[length] != '\0');
}

/* The agent in the list of an LD_PRELOAD, with how many entries before it; or NULL. */
static ONE_COPY char *find_agent(char *list, unsigned *before)
{
    for (*before = 0; *list; list = behind(list), ++*before)
        if (is_agent(list, entry_length(list)))
            return list;
    return NULL;
}

/* Takes us out of the list, where it lies. True: it is empty now. */
static bool leave_preload(char *list)
{
    unsigned before;
    for (char *at; (at = find_agent(list, &before));) {
        size_t length = entry_length(at);
        if (!*own_entry && length < ENTRY_BYTES) {
            text_copy(own_entry, length + 1, at);
            entries_before = before;
        }
        char *from = behind(at);
        if (!*from && at > list)
            at--; /* the separator before it */
        while ((*at++ = *from++))
            ;
    }
    return !*list;
}

const void *preload_env_take_out(environment_setting_fn is_setting)
{
    char **word = (char **)__libc_stack_end, **kept;
    unsigned ignored;
    if (!word)
        return NULL;
    word += 1 + *(const long *)word + 1; /* argc, argv, NULL */
    for (kept = word; *word; word++) {
        bool preload = text_starts(*word, preload_name) && find_agent(*word + NAME_BYTES, &ignored);
        if (preload ? leave_preload(*word + NAME_BYTES) : is_setting(*word)) {
            if (!preload && n_settings < SETTINGS_MAX)
                settings[n_settings++] = *word;
            continue;
        }
        *kept++ = *word;
    }
    /* Those who look for the auxiliary vector behind the environment find an empty one, and look elsewhere. */
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

/* Do both set the same variable? */
static bool same_name(const char *a, const char *b)
{
    while (*a == *b && *a && *a != '=')
        a++, b++;
    return *a == '=' && *b == '=';
}

bool preload_env_room(char *const *envp, size_t *pointers, size_t *bytes)
{
    size_t n = 0, length = 0;
    for (; envp && envp[n]; n++)
        if (text_starts(envp[n], preload_name))
            length = text_length(envp[n]);
    *pointers = n + SETTINGS_MAX + 2;
    *bytes = NAME_BYTES + text_length(own_entry) + length + 3;
    return n <= ENTRIES_MAX && length < ENTRIES_MAX;
}

/* LD_PRELOAD=..., with us in the list at the place that we had. */
static void make_preload(char *text, char *list)
{
    char *from = list;
    for (unsigned i = 0; *from && i < entries_before; i++)
        from = behind(from);
    size_t length = text_copy(text, NAME_BYTES + 1, preload_name), ahead = (size_t)(from - list);
    length += text_copy(text + length, ahead + 1, list);
    if (ahead && !*from)
        text[length++] = ':'; /* the last one has none behind it */
    length += text_copy(text + length, ENTRY_BYTES, own_entry);
    if (*from)
        text[length++] = ':';
    text_copy(text + length, text_length(from) + 1, from);
}

void preload_env_put_in(char *const *envp, char **pointers, char *text)
{
    size_t n = 0;
    unsigned ignored;
    char *theirs = NULL;
    for (; envp && envp[n]; n++) {
        pointers[n] = envp[n];
        if (!text_starts(envp[n], preload_name))
            continue;
        theirs = envp[n] + NAME_BYTES;
        if (!find_agent(theirs, &ignored)) {
            make_preload(text, theirs);
            pointers[n] = text;
        }
    }
    size_t given = n;
    for (unsigned k = 0; k < n_settings; k++) {
        size_t i = 0;
        while (i < given && !same_name(envp[i], settings[k]))
            i++;
        if (i == given)
            pointers[n++] = settings[k];
    }
    if (!theirs) {
        char none = '\0';
        make_preload(text, &none);
        pointers[n++] = text;
    }
    pointers[n] = NULL;
}
