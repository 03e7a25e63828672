/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *     jumps free|denied|filtered PROGRAM ARG...   runs a program: as it is, where memory may not be both written and
 *                                                 executed, or under a seccomp filter that allows everything
 *                                                 (with JUMPS_PRELOAD as its LD_PRELOAD)
 *     jumps look BLOCKS                           allocates BLOCKS blocks; what kind of jump malloc and free end in
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SET_MDWE         65 /* PR_SET_MDWE, Linux 6.3 */
#define REFUSE_EXEC_GAIN 1ul
#define HOT_BYTES        32

static int confine(const char *how)
{
    struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = 1, .filter = allow};
    if (!strcmp(how, "denied"))
        return prctl(SET_MDWE, REFUSE_EXEC_GAIN, 0ul, 0ul, 0ul);
    if (!strcmp(how, "filtered"))
        return prctl(PR_SET_NO_NEW_PRIVS, 1ul, 0ul, 0ul, 0ul) ||
               prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    return 0;
}

/* Jumps through a pointer are ff 25, those to a place e9. */
static const char *last_jump(void *function)
{
    const uint8_t *code = function;
    for (int i = 0; i < HOT_BYTES; i++)
        if (code[i] == 0xff && code[i + 1] == 0x25)
            return "pointer";
    return memchr(code, 0xe9, HOT_BYTES) ? "place" : "none";
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "look")) {
        if (confine(argv[1]))
            return perror(argv[1]), 2;
        if (getenv("JUMPS_PRELOAD"))
            setenv("LD_PRELOAD", getenv("JUMPS_PRELOAD"), 1);
        execv(argv[2], argv + 2);
        return 127;
    }
    for (int i = 0; i < atoi(argv[2]); i++) {
        void *p = malloc(100), *q = calloc(3, 33);
        q = realloc(q, 5000);
        free(p);
        free(q);
    }
    printf("malloc=%s free=%s\n", last_jump((void *)malloc), last_jump((void *)free));
    return 0;
}
