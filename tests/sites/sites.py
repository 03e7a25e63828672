# SPDX-License-Identifier: BSD-2-Clause
"""Accounts of call sites equal what programs count themselves, to the byte, whatever allocator is below."""
import ctypes.util
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
import tap
from tap import agent_env, built, check, equal, own_counts, pick, private_dir, run, succeed

SCRATCH = tempfile.TemporaryDirectory(prefix="allium-sites-")
STRICT = ["-Wall", "-Wextra", "-Wshadow", "-Werror"]
PERIOD = 512 << 10


def compiled(name, *options, link=()):
    out = os.path.join(SCRATCH.name, "".join([name, *options]).replace("/", ""))
    if not os.path.exists(out):
        compiler = ["g++", "-std=gnu++17", "-fsized-deallocation"] if name.endswith(".cc") else ["gcc"]
        succeed([
            *compiler, "-g", "-O1", "-fno-builtin", *STRICT, *options,
            os.path.join(HERE, name), "-o", out, "-lpthread", *link
        ])
    return out


def env_of(ledgers, preload=(), **more):
    return agent_env(ledgers, PERIOD, preload, ALLIUM_SITES="1", **more)


def report(ledgers, pid, *options, code=0):
    done = run([built("ALLIUM"), "sites", str(pid), "--json", *options], env=dict(os.environ, ALLIUM_DIR=ledgers))
    equal(done.returncode, code, "code of allium sites: " + done.stderr.decode())
    return json.loads(done.stdout) if code == 0 else None, done.stderr.decode()


def outermost(row):
    """The function that has the code."""
    return row["name"].split("inlined in ")[-1].split(" at ")[0] if row["name"] else row["function"]


def sums(rows, *keys):
    """{function: what its rows add up to}"""
    of = {}
    for row in rows:
        function = outermost(row)
        have = of.get(function, (0,) * len(keys))
        of[function] = tuple(a + row[key] for a, key in zip(have, keys))
    return of


MADE = ("allocations", "requested_bytes", "total_bytes", "live_objects", "live_bytes")
FREED = ("frees_here", "freed_here_bytes")


def compare(ledgers, pid, places, by_allocator=()):
    """All that a process printed of itself; -> what stands on stderr. What `by_allocator` frees, the allocator does, by
    free().
    """
    whole, said = report(ledgers, pid)
    made = sums(whole["rows"], *MADE, "live_slack_bytes")
    freed = sums(report(ledgers, pid, "--freed")[0]["rows"], *FREED)
    bad = []
    for place, numbers in places.items():
        calls, requested, usable, live, live_bytes, live_usable, frees, freed_bytes = numbers
        want = calls, requested, usable, live, live_bytes, live_usable - live_bytes
        if made.get(place, (0,) * 6) != want:
            bad.append(("made by", place, made.get(place), want))
        if place not in by_allocator and freed.get(place, (0,) * 2) != (frees, freed_bytes):
            bad.append(("freed by", place, freed.get(place), (frees, freed_bytes)))
    check(not bad, "have, want:", bad, said)
    return said


def counted(threads, *words, preload=(), rounds=None, program=None, by_allocator=(), **more):
    """Runs it, compares each of its processes; -> what was said of losses, by process in order"""
    rounds = rounds or pick(20_000, 500_000) // (50 if "again" in words else 1)
    with private_dir() as ledgers:
        done = succeed([program or compiled("own.cc"), str(threads),
                        str(rounds), *words], env=env_of(ledgers, preload, **more))
        return [compare(ledgers, pid, places, by_allocator) for pid, places in own_counts(done.stdout.decode()).items()]


def none_lost(said):
    for text in said:
        check("charged to no site" not in text and "bypassed the agent" not in text and "damaged" not in text,
              text)


def crowds():
    for threads in 1, 4, 15, 16, 40:
        none_lost(counted(threads))


def turnover():
    for threads in 2, 14, 30:
        none_lost(counted(threads, "again"))


def children():
    for threads in 1, 20:
        said = counted(threads, "fork")
        equal(len(said), 2, "processes")
        none_lost(said)
        check("allocated before the accounts began" in said[1], "what the child freed of its parent's", said[1])


def signal_alloc():
    """An allocator that handlers may call."""
    source = os.path.join(HERE, "..", "stress", "signal_alloc.c")
    library = os.path.join(SCRATCH.name, "signal_alloc.so")
    succeed(["gcc", "-O2", "-fPIC", "-shared", "-fno-builtin", source, "-o", library])
    return library


def handlers():
    library = signal_alloc()
    for threads in 1, 20:
        none_lost(
            counted(threads, "handlers", rounds=pick(200_000, 2_000_000), preload=[library],
                    by_allocator=("by_realloc", "by_reallocarray")))


def allocators():
    found = 0
    for name in "jemalloc", "tcmalloc_minimal", "mimalloc":
        library = ctypes.util.find_library(name)
        if not library:
            continue
        found += 1
        none_lost(counted(4, preload=[library]))
        none_lost(counted(2, "fork", preload=[library]))
    check(found == 3, "allocators missing:", 3 - found)


def linked():
    """An allocator that the program itself is linked with."""
    none_lost(
        counted(4, program=compiled("own.cc", "-Wl,--no-as-needed",
                                    link=["-l:" + ctypes.util.find_library("jemalloc")])))


def exact_samples_beside():
    """Every object is a sample, too: all goes by the cold halves."""
    with private_dir() as ledgers:
        env = dict(env_of(ledgers), ALLIUM_PERIOD="1")
        done = succeed([compiled("own.cc"), "4", "5000"], env=env)
        (pid, places), = own_counts(done.stdout.decode()).items()
        compare(ledgers, pid, places)
        ledger, = [found for found in tap.totals(ledgers) if found["pid"] == pid]
        tap.no_losses(ledger)
        check(ledger["live_seen_bytes"] >= sum(place[4] for place in places.values()), "live bytes of samples", ledger)


def first_calls():
    """Two threads call each form of operator new for the first time at once: both are counted where they stand."""
    forms = ("by_new", "by_array", "by_nothrow", "by_array_nothrow", "by_aligned")
    for turn in range(pick(30, 300)):  # one run of some eight failed when who came second called the real one
        with private_dir() as ledgers:
            p = subprocess.Popen([compiled("first_new.cc"), "2"], env=env_of(ledgers))
            equal(p.wait(tap.TIMEOUT), 0, "its code")
            made = sums(report(ledgers, p.pid)[0]["rows"], "allocations")
            equal({form: made.get(form) for form in forms}, dict.fromkeys(forms, (2,)), "allocations, run %d" % turn)


def first_call_steps():
    """Two threads make the first call of a site: one is at some instruction of the hook, at each in turn, while the
    other calls.
    """
    program = compiled("first_call_steps.c", "-mno-red-zone")
    for call, function, key in ("malloc", "make", "allocations"), ("free", "drop", "frees_here"):
        for preload in [], [signal_alloc()]:
            with private_dir() as ledgers:
                p = subprocess.Popen([program, call], env=env_of(ledgers, preload), stdout=subprocess.PIPE)
                pairs = int(p.communicate(timeout=tap.TIMEOUT)[0] or 0)
                equal(p.returncode, 0, "its code")
                whole, said = report(ledgers, p.pid, *(["--freed"] if call == "free" else []))
            none_lost([said])
            equal(
                sums(whole["rows"], key)[function], (2 * pairs,),
                "%s of %s with %s" % (key, function, preload or "glibc"))


def first_of_a_child():
    """Two threads of a fork child allocate at once: one makes the ledger, the other waits for it, and both are counted.
    """
    for _ in range(pick(1, 12)):
        with private_dir() as ledgers:
            done = succeed([compiled("first_child.c"), "150"], env=env_of(ledgers))
            for pid in done.stdout.split():
                whole, said = report(ledgers, int(pid))
                made = sums(whole["rows"], "allocations")
                check(made.get("by_malloc") == (2,), "allocations of child %d" % int(pid), made, said)


def generations():
    """Each a child of the one before: the map of objects takes no more address space for each, and the last one's is
    exact.
    """
    source = os.path.join(SCRATCH.name, "generations.c")
    with open(source, "w") as file:
        file.write("""#include <stdio.h>
        #include <stdlib.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static void *kept[40];
        __attribute__((noinline)) static void make(void) {
            for (int i = 0; i < 40; i++) {
                free(kept[i]);
                kept[i] = malloc(i % 2 ? 100 : 200000);
            }
        }
        __attribute__((noinline)) static void drop(void) {
            for (int i = 0; i < 10; i++) {
                free(kept[i]);
                kept[i] = NULL;
            }
        }
        int main(int argc, char **argv) {
            long pages = 0;
            for (int left = atoi(argv[1]); ; left--) {
                FILE *f = fopen("/proc/self/statm", "r");
                if (fscanf(f, "%ld", &pages) != 1) return 1;
                fclose(f);
                make();
                drop();
                printf("%d %ld\\n", (int)getpid(), pages / 256);
                fflush(stdout);
                if (!left) return 0;
                int status = 0;
                if (fork()) { wait(&status); return status != 0; }
            }
        }""")
    program = os.path.join(SCRATCH.name, "generations")
    succeed(["gcc", "-g", "-O1", "-fno-builtin", source, "-o", program])
    number = pick(150, 300)
    with private_dir() as ledgers:
        done = succeed([program, str(number)], env=env_of(ledgers))
        of = [tuple(map(int, line.split())) for line in done.stdout.decode().splitlines()]
        equal(len(of), number + 1, "generations")
        for pid, _ in of[0], of[1], of[2], of[3], of[-2], of[-1]:
            whole, said = report(ledgers, pid)
            none_lost([said])
            made = sums(whole["rows"], "allocations", "requested_bytes", "live_objects", "live_bytes")["make"]
            equal(made, (40, 20 * 200100, 30, 15 * 200100), "made by %d" % pid)
    check(of[-1][1] < of[4][1] + 2048, "MiB of address space, of the fifth and the last:", of[4][1], of[-1][1])


def read_while_it_runs():
    with private_dir() as ledgers:
        p = subprocess.Popen([compiled("own.cc"), "4", "20000", "wait"], env=env_of(ledgers), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
        try:
            lines = "".join(p.stdout.readline().decode() for _ in range(18))
            places, = own_counts(lines).values()
            compare(ledgers, p.pid, places)
            p.send_signal(signal.SIGKILL)
            p.wait()
            compare(ledgers, p.pid, places)
        finally:
            p.kill()
            p.communicate()


def forks_in_handlers():
    """What a handler interrupts that forks goes on in the child, with sums that are mapped there, too."""
    program = os.path.join(SCRATCH.name, "guest_fork")
    succeed([
        "gcc", "-g", "-O1", "-fno-builtin", "-Wno-unused-result",
        os.path.join(HERE, "..", "stress", "guest_fork.c"), "-o", program, "-lpthread"
    ])
    for how in "handler", "handler-allocates":
        with private_dir() as ledgers:
            done = succeed(
                [program, how, "100000", str(pick(300, 3000))],
                env=dict(env_of(ledgers, [signal_alloc()]), ALLIUM_PERIOD="64K"),
            )
        equal(done.stdout.decode().splitlines()[1:], ["killed 0", "signal 0", "unwell 0"], how)


def many_sites_in_children():
    """What a handler interrupts that forks enters its object as the parent's: the child has no sums of so high a
    number.
    """
    with private_dir() as ledgers:  # some one in a thousand children was killed
        done = succeed(
            [compiled("many_sites.c"), str(pick(500, 5000))],
            env=dict(env_of(ledgers, [signal_alloc()]), ALLIUM_PERIOD="1"),
        )
    equal(done.stdout.decode().splitlines()[-1], "killed 0", "children")


def each_step():
    """A handler forks at each instruction of calls into the agent: no child is harmed, and what each makes later is
    counted.
    """
    program = compiled("each_step.c", "-mno-red-zone")
    for call, every in (("malloc", 1), ("calloc", 1), ("free", 1), ("xmalloc", 2), ("realloc", 2), ("aligned_alloc", 2),
                        ("failure", 4), ("large_realloc", 10), ("failed_realloc", 10)):
        with private_dir() as ledgers:
            done = succeed([program, call, str(pick(every, 1))], env=env_of(ledgers)).stdout.decode().splitlines()
            equal(done[-1], "unwell 0", "children at the steps of %s: %s" % (call, done))
            check(len(done) > 30, "steps of", call, len(done))
            for pid in done[:-1:pick(16, 1)]:
                made = sums(report(ledgers, int(pid))[0]["rows"], "allocations", "live_objects")
                equal(made.pop("afterwards"), (5, 5), "made by %s, of %s" % (pid, call))
                # What comes while its thread writes for its parent is none of the child's yet.
                check(made.pop("in_handler", (3, 3)) == (3, 3), "made in its handler by %s, of %s" % (pid, call), made)
                check(all(0 <= number < 10 for row in made.values() for number in row),
                      "the rest, of %s, of %s" % (pid, call), made)


def locked():
    """What mlockall() locks in a fork child is the program's own, and little more."""
    source = os.path.join(SCRATCH.name, "locks.c")
    with open(source, "w") as file:
        file.write("""#include <stdio.h>
        #include <stdlib.h>
        #include <sys/mman.h>
        #include <sys/wait.h>
        #include <unistd.h>
        int main(void) {
            char line[256];
            for (int left = 3; left; left--) {
                free(malloc(100));
                if (fork()) { wait(NULL); return 0; }
            }
            if (mlockall(MCL_CURRENT)) return 1;
            FILE *f = fopen("/proc/self/status", "r");
            while (fgets(line, sizeof(line), f))
                fputs(line, stdout);
        }""")
    program, kib = os.path.join(SCRATCH.name, "locks"), []
    succeed(["gcc", "-g", "-O1", "-fno-builtin", source, "-o", program])
    for sites in "0", "1":
        with private_dir() as ledgers:
            done = succeed([program], env=dict(env_of(ledgers), ALLIUM_SITES=sites)).stdout.decode()
        kib.append(int(dict(line.split(":", 1) for line in done.splitlines())["VmLck"].split()[0]))
    check(kib[1] < kib[0] + 4096, "KiB locked in a great-grandchild without sites, and with them:", kib)


def sealed():
    """Where mmap() kills, a fork child lives."""
    source = os.path.join(SCRATCH.name, "sealed.c")
    with open(source, "w") as file:
        file.write("""#include <linux/filter.h>
        #include <linux/seccomp.h>
        #include <stddef.h>
        #include <stdlib.h>
        #include <sys/prctl.h>
        #include <sys/syscall.h>
        #include <sys/wait.h>
        #include <unistd.h>
        int main(void) {
            struct sock_filter rules[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            };
            struct sock_fprog all = {4, rules};
            int status = 1;
            free(malloc(100));
            if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all)) _exit(2);
            if (!fork()) { free(malloc(100)); _exit(0); }
            wait(&status);
            _exit(status != 0);
        }""")
    program = os.path.join(SCRATCH.name, "sealed")
    succeed(["gcc", "-g", "-O1", "-fno-builtin", source, "-o", program])
    with private_dir() as ledgers:
        succeed([program], env=env_of(ledgers))


def tail_calls():
    """Who is there to return to is charged, and marked; a call through a pointer is not."""
    source = os.path.join(SCRATCH.name, "tails.c")
    with open(source, "w") as file:
        file.write("""#include <stdlib.h>
        void *volatile kept;
        __attribute__((noinline)) void *jumps(size_t n) { return malloc(n); }
        __attribute__((noinline)) void asks(void) { kept = jumps(100); }
        __attribute__((noinline)) void asks_itself(void) { kept = malloc(200); }
        void *(*volatile pointer)(size_t) = malloc;
        __attribute__((noinline)) void asks_by_pointer(void) { kept = pointer(300); }
        __attribute__((noinline)) void my_allocate(void) { kept = malloc(400); }
        __attribute__((noinline)) void seldom_allocate(void) { kept = malloc(1); }
        int main(void)
        {
            asks(), asks_itself(), seldom_allocate();
            for (int i = 0; i < 2000; i++)
                asks_by_pointer();
            for (int i = 0; i < 100; i++)
                my_allocate();
            return 0;
        }""")
    for options in ["-fno-plt"], ["-fplt"]:
        program = os.path.join(SCRATCH.name, "tails" + options[0])
        succeed(["gcc", "-g", "-O2", "-fno-builtin", "-Wno-pedantic", *options, source, "-o", program])
        with private_dir() as ledgers:
            p = subprocess.Popen([program], env=env_of(ledgers))
            equal(p.wait(60), 0, "its code")
            have = {
                row["function"]: (row["requested_bytes"], row["class"])
                for row in report(ledgers, p.pid)[0]["rows"]
            }
            screen = succeed([built("ALLIUM"), "sites", str(p.pid)], env=dict(os.environ, ALLIUM_DIR=ledgers))
        equal(
            have,
            {
                "asks": (100, "tail call"),
                "asks_itself": (200, None),
                "asks_by_pointer": (600000, None),
                "my_allocate": (40000, None),
                "seldom_allocate": (1, None),
            },
            "sites with " + options[0],
        )
        check("requested: 625 KiB" in screen.stdout.decode() and "sites: 5" in screen.stdout.decode(),
              screen.stdout.decode())
        check("(tail call)" in screen.stdout.decode(), screen.stdout.decode())
        check("wrappers, by their names: my_allocate;" in screen.stderr.decode(), screen.stderr.decode())


def unloaded():
    """Of libraries that lie where another one has been, with their calls at its addresses, each has what is its own."""
    program = compiled("twins.c", link=["-ldl"])
    twins = [compiled("twin.c", "-shared", "-fPIC", "-DTWIN=" + name) for name in "abc"]
    with private_dir() as ledgers:
        done = succeed([program, str(pick(400, 5000)), *twins], env=env_of(ledgers))
        (pid, places), = own_counts(done.stdout.decode()).items()
        none_lost([compare(ledgers, pid, places)])
    check(int(done.stderr) > 100, "how often one lay where the other had been:", done.stderr)


def of_one_number():
    """Of ledgers that were left by several programs of one number the last one's is shown, in whatever order they are
    found.
    """
    program = os.path.join(SCRATCH.name, "images")
    succeed(
        ["gcc", "-g", "-O1", "-fno-builtin",
         os.path.join(os.path.dirname(HERE), "tags", "images.c"), "-o", program])
    with private_dir() as ledgers:
        p = subprocess.Popen([program], env=dict(env_of(ledgers), ALLIUM_PERIOD="1"))
        equal(p.wait(60), 0, "its code")
        files = [os.path.join(ledgers, name) for name in os.listdir(ledgers) if name.endswith(".ledger")]
        equal(len(files), 2, "ledgers")
        for file in files * 2:  # a copy is found at another place than what it was made of
            succeed(["cp", "--sparse=always", file, file + "-copy"])
            os.rename(file + "-copy", file)
            made = sums(report(ledgers, p.pid)[0]["rows"], "requested_bytes")
            equal(made, {"after": (200,)}, "sites, of the last")
            done = succeed([built("ALLIUM"), "report", str(p.pid), "--json"],
                           env=dict(os.environ, ALLIUM_DIR=ledgers)).stdout.decode()
            check("after" in done and "before" not in done, "the report of", done)


def recorded():
    """A recording has the same at its end, of each process, and nothing of moments that were not."""
    path = os.path.join(SCRATCH.name, "x.allium")
    done = succeed(
        [built("ALLIUM"), "run", "--sites", "--force", "-o", path, "--",
         compiled("own.cc"), "2", "20000", "fork"])
    counts = own_counts(done.stdout.decode())
    equal(len(counts), 2, "processes")
    check("total bytes allocated:" in done.stderr.decode(), done.stderr.decode())
    for pid, places in counts.items():
        whole = json.loads(succeed([built("ALLIUM"), "sites", path, "--json", "--where", "pid=%d" % pid]).stdout)
        made = sums(whole["rows"], *MADE)
        for place, numbers in places.items():
            equal(made.get(place, (0,) * 5), numbers[:5], "made by %s of %d" % (place, pid))


def many_objects():
    """Ten million live objects of 8 bytes: at most 24 bytes for each, beside what they take without sites."""
    source = os.path.join(SCRATCH.name, "many.c")
    number = pick(1_000_000, 10_000_000)
    with open(source, "w") as file:
        file.write("""#include <stdio.h>
        #include <stdlib.h>
        int main(int argc, char **argv) {
            long n = atol(argv[1]);
            void **all = malloc(n * sizeof(*all));
            for (long i = 0; i < n; i++)
                all[i] = malloc(8);
            char line[256];
            FILE *f = fopen("/proc/self/status", "r");
            while (fgets(line, sizeof(line), f))
                fputs(line, stdout);
            return argc > 2 && all[0] == all[1];
        }""")
    program = os.path.join(SCRATCH.name, "many")
    succeed(["gcc", "-g", "-O1", "-fno-builtin", "-Wno-unused-result", source, "-o", program])
    for name in None, "jemalloc", "tcmalloc_minimal":
        preload, resident = [ctypes.util.find_library(name)] if name else [], []
        for sites in "0", "1":
            with private_dir() as ledgers:
                done = succeed([program, str(number)], env=dict(env_of(ledgers, preload), ALLIUM_SITES=sites))
                words = dict(line.split(":", 1) for line in done.stdout.decode().splitlines())
                resident.append(int(words["VmRSS"].split()[0]) * 1024)
                if sites == "1":
                    made = sums(report(ledgers, int(words["Pid"]))[0]["rows"], *MADE)["main"]
                    equal((made[0], made[1], made[3]), (number + 1, number * 16, number + 1), "of main")
        each = (resident[1] - resident[0]) / number
        check(each <= 24, "bytes for each object with", name, each)


def little_room():
    """Where address space is limited, or nothing can be reserved, nothing is kept, and that is said."""
    with private_dir() as ledgers:
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        p = subprocess.Popen([compiled("own.cc"), "1", "2000"], env=env_of(ledgers), preexec_fn=limit,
                             stdout=subprocess.PIPE)
        p.communicate(timeout=60)
        equal(p.returncode, 0, "its code")
        said = report(ledgers, p.pid, code=1)[1]
        check("cannot keep accounts of call sites" in said, said)


def without():
    with private_dir() as ledgers:
        p = subprocess.Popen([compiled("own.cc"), "1", "2000"], env=agent_env(ledgers, 1), stdout=subprocess.PIPE)
        p.communicate(timeout=60)
        said = report(ledgers, p.pid, code=1)[1]
        check("has no accounts of call sites" in said and "allium run --sites" in said, said)
        equal(said.count("\n"), 1, "lines")


def no_usable_size():
    """Where the allocator has no malloc_usable_size(), slack is unknown, and not 0: on screens and in JSON."""
    library = compiled("bare_malloc.c", "-shared", "-fPIC", "-fno-builtin")
    with private_dir() as folder:
        recording = os.path.join(folder, "r.allium")
        env = dict(os.environ, ALLIUM_DIR=folder, LD_PRELOAD=library)
        succeed([
            built("ALLIUM"), "run", "--quiet", "--sites", "--period", "1", "-o", recording, "--", "/bin/sh", "-c", ":"
        ], env=env)
        printed = succeed([built("ALLIUM"), "sites", recording]).stdout.decode()
        check("slack: unknown" in printed, printed)
        found = json.loads(succeed([built("ALLIUM"), "sites", recording, "--json"]).stdout)
        check(found["rows"] and found["after"]["total"]["allocations"], found)
        equal({(row["slack_bytes"], row["live_slack_bytes"])
               for row in found["rows"]} | {(found["after"]["total"]["total_bytes"],) * 2}, {(None, None)},
              "slack and total")
        kept = succeed(
            [built("ALLIUM"), "sql", recording, "SELECT count(*), count(slack_bytes) FROM live_sample",
             "--json"]).stdout.decode()
        samples, known = (
            json.loads(kept)["rows"][0].values()
            if isinstance(json.loads(kept)["rows"][0], dict)
            else json.loads(kept)["rows"][0]
        )
        check(samples > 0 and known == 0, "samples, and how many have a slack:", samples, known)


tap.main([
    ("sites equal what a program counts itself, with any number of threads", crowds),
    ("threads take over the counters of those that have ended", turnover),
    ("a fork child has accounts of its own", children),
    ("signal handlers that allocate are counted, and miscount nothing", handlers),
    ("with jemalloc, tcmalloc and mimalloc below", allocators),
    ("with jemalloc linked", linked),
    ("with each object a sample besides", exact_samples_beside),
    ("two threads that call an operator for the first time", first_calls),
    ("two threads that make the first call of a site, at whatever instruction", first_call_steps),
    ("two threads of a fork child that allocate for the first time", first_of_a_child),
    ("a hundred and fifty generations of fork children", generations),
    ("of a process that runs, and of one that was killed", read_while_it_runs),
    ("a handler that forks in the midst of it harms no child", forks_in_handlers),
    ("nor where its parent had more call sites than it has", many_sites_in_children),
    ("nor at whatever instruction it comes", each_step),
    ("mlockall() in a fork child locks what it would, and little more", locked),
    ("a fork child under seccomp makes no system call", sealed),
    ("tail calls are told, and likely wrappers", tail_calls),
    ("of a library that lies where another one has been", unloaded),
    ("of several programs of one number, the last one's", of_one_number),
    ("a recording has them, too", recorded),
    ("millions of small objects are followed exactly, with little memory", many_objects),
    ("with little address space", little_room),
    ("slack that nobody knows is unknown", no_usable_size),
    ("of a process without accounts a line says what to do", without),
])
