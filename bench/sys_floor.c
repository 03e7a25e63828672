/* SPDX-License-Identifier: BSD-2-Clause */
/* sys_floor OBJECT PREFIX: attaches the programs whose names begin so, prints "ready", and ends with stdin. */
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char end;
    struct bpf_program *p;
    struct bpf_object *o = argc == 3 ? bpf_object__open_file(argv[1], NULL) : NULL;
    if (!o)
        return 2;
    bpf_object__for_each_program(p, o)
        bpf_program__set_autoload(p, !strncmp(bpf_program__name(p), argv[2], strlen(argv[2])));
    if (bpf_object__load(o))
        return 1;
    bpf_object__for_each_program(p, o) if (bpf_program__autoload(p) && !bpf_program__attach(p)) return 1;
    puts("ready");
    fflush(stdout);
    while (read(0, &end, 1) > 0)
        ;
    return 0;
}
