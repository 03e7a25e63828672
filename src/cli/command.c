/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/command.h"

#include "cli/debuginfod.h"
#include "cli/screen_options.h"
#include "cli/source.h"
#include "query/field.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_MAX   56
#define FIRST_LONG    256 /* getopt values of options without a letter begin here */
#define HELP_INDEX    (OPTIONS_MAX - 1)
#define COLUMN_OF_DOC 28
#define USAGE_COLUMNS 100

/* Bytes up to the next blank, or end of line, that is not within brackets. */
static size_t word_length(const char *text)
{
    size_t len = 0, depth = 0;
    for (; text[len] && (depth || (text[len] != ' ' && text[len] != '\n')); len++)
        depth += (size_t)(text[len] == '[') - (size_t)(text[len] == ']');
    return len;
}

/* Each line of the usage is a form of the command. */
static void print_usage(const struct command *c)
{
    int indent = printf("usage: allium %s", c->name), column = indent;
    for (const char *word = c->usage; *word; word += strspn(word, " ")) {
        int len = (int)word_length(word);
        if (*word == '\n') {
            column = printf("\n       allium %s", c->name) - 1;
            word++;
            continue;
        }
        if (column > indent && column + 1 + len > USAGE_COLUMNS)
            column = printf("\n%*s", indent, "") - 1;
        column += printf(" %.*s", len, word);
        word += len;
    }
    putchar('\n');
}

static void print_help(const struct command *c)
{
    print_usage(c);
    printf("\n%s\n", c->summary);
    if (strstr(c->usage, "[SOURCE"))
        printf("\nSOURCE: a recording, FILE@TIME (a moment in it), or a process id (default: %s)\n",
               c->source ? c->source : "the newest recording here");
    else if (strstr(c->usage, "SOURCE"))
        printf("\nSOURCE: a recording, FILE@TIME (a moment in it), or a process id\n");
    if (c->more)
        c->more();
    printf("\noptions:\n");
    for (const struct option_doc *o = c->options; o->name; o++) {
        char left[80];
        snprintf(left, sizeof(left), "%s%c%s--%s%s%s", o->letter ? "-" : "", o->letter ? o->letter : '-',
                 o->letter ? ", " : "", o->name, o->value ? " " : "", o->value ? o->value : "");
        /* Without a letter the line begins with the long option: its first dash stands for the letter's. */
        printf("  %-*s %s\n", COLUMN_OF_DOC - 3, o->letter ? left : left + 1, o->doc);
    }
    printf("  %-*s %s\n", COLUMN_OF_DOC - 3, "-h, --help", "print this text");
    if (c->examples)
        printf("\nexamples:\n");
    for (const char *const *e = c->examples; e && *e; e += 2)
        printf("  %s\n      %s\n", e[0], e[1]);
}

/* Usage errors that are to be printed in one line. */
static struct {
    unsigned depth; /* command_gather_begin() without an end */
    struct buf text;
} gathered;

int command_misuse(const struct command *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    command_gather_begin();
    buf_addstr(&gathered.text, gathered.text.len ? "; " : "");
    buf_vprintf(&gathered.text, fmt, ap);
    va_end(ap);
    return command_gather_end(c, EXIT_USAGE);
}

void command_gather_begin(void)
{
    gathered.depth++;
}

int command_gather_end(const struct command *c, int code)
{
    if (--gathered.depth || !gathered.text.len)
        return code;
    fprintf(stderr, "allium: %s (allium %s --help)\n", buf_str(&gathered.text), c->name);
    buf_release(&gathered.text);
    gathered.text = (struct buf)BUF_INIT;
    return EXIT_USAGE;
}

int command_fail(int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "allium: ");
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    return code;
}

void command_notes(struct buf *notes)
{
    for (char *line = notes->len ? notes->data : NULL, *end; line && (end = strchr(line, '\n'));
         line = end + 1) {
        *end = '\0';
        command_fail(0, "%s", line);
    }
    buf_release(notes);
}

int command_written(struct sink *out, int code)
{
    int bad = sink_finish(out);
    return bad && bad != -EPIPE ? command_fail(EXIT_FAILED, "cannot write: %s", strerror(-bad))
                                : screen_options_check(code);
}

static bool has_option(const struct command *c, const char *name)
{
    for (const struct option_doc *o = c->options; o->name; o++)
        if (!strcmp(o->name, name))
            return true;
    return false;
}

/* If the first `len` bytes of `option` are an option of another tool or of an earlier version, returns a hint at its
 * replacement, else NULL. */
static const char *counterpart(const struct command *c, const char *option, size_t len)
{
    static const char attach[] =
        "a running process cannot be attached to: start it with allium run, or with the "
        "environment that allium env prints",
                      folded[] = "use --folded live, and draw it with flamegraph.pl";
    static const struct {
        const char *option;
        const char *command; /* NULL: every command that has the option `with` */
        const char *with, *answer;
    } others[] = {
        {"-p", "run", NULL, attach},
        {"--pid", "run", NULL, attach},
        {"--attach", "run", NULL, attach},
        {"--flamegraph", NULL, "folded", folded},
        {"--svg", NULL, "folded", folded},
        {"-n", NULL, "top", "use --top N"},
        {"--limit", NULL, "top", "use --top N"},
        {"--every", NULL, "interval", "it is now --interval"},
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (strlen(others[i].option) == len && !strncmp(others[i].option, option, len) &&
            (others[i].command ? !strcmp(others[i].command, c->name) : has_option(c, others[i].with)))
            return others[i].answer;
    return NULL;
}

static int report_unknown(const struct command *c, const char *option)
{
    struct query_field names[OPTIONS_MAX] = {{.name = "help"}};
    size_t n = 1, len = strcspn(option, "=");
    const char *instead = counterpart(c, option, len);
    if (instead)
        return command_misuse(c, "unknown option %.*s: %s", (int)len, option, instead);
    for (const struct option_doc *o = c->options; o->name; o++)
        names[n++] = (struct query_field){.name = o->name};
    size_t meant = len > 2 ? query_field_closest(names, n, option + 2, len - 2) : QUERY_NO_FIELD;
    if (meant == QUERY_NO_FIELD)
        return command_misuse(c, "unknown option %s", option);
    return command_misuse(c, "unknown option %s; did you mean --%s?", option, names[meant].name);
}

/* `option` as it was written: -o or --output. */
static int report_missing_value(const struct command *c, const char *option)
{
    const struct option_doc *o = c->options;
    while (o->name &&
           (option[1] == '-' ? strncmp(option + 2, o->name, strlen(option + 2)) : option[1] != o->letter))
        o++;
    return o->name ? command_misuse(c, "option %s needs a value, %s: %s", option, o->value, o->doc)
                   : command_misuse(c, "option %s needs a value", option);
}

static int report_bad_option(const struct command *c, int found, char **argv)
{
    if (found == ':')
        return report_missing_value(c, argv[optind - 1]);
    if (optopt > 0 && optopt < FIRST_LONG && strncmp(argv[optind - 1], "--", 2))
        return report_unknown(c, (char[]){'-', (char)optopt, '\0'});
    if (optopt > 0)
        return command_misuse(c, "option %.*s takes no value", (int)strcspn(argv[optind - 1], "="),
                              argv[optind - 1]);
    return report_unknown(c, argv[optind - 1]);
}

static int choose_servers(const struct command *c, const struct arguments *a)
{
    for (size_t i = 0; c->options[i].name; i++)
        if (!strcmp(c->options[i].name, DEBUGINFOD_OPTION_NAME))
            return debuginfod_choose(c, a->value[i]);
    return -1;
}

/* Adds a value of an option that may be given several times. Returns whether there was room for it. */
static bool add_many(struct arguments *a, const char *name, const char *value)
{
    int times = 0;
    for (int i = 0; i < a->n_many; i++)
        times += !strcmp(a->many_of[i], name);
    if (times == ARGUMENTS_MANY || a->n_many == sizeof(a->many) / sizeof(*a->many))
        return false;
    a->many_of[a->n_many] = name;
    a->many[a->n_many++] = value;
    return true;
}

/* Takes the value of option number `k`. -1, or an exit code after a line. */
static int take_option(const struct command *c, struct arguments *a, size_t k, char **first)
{
    const struct option_doc *o = &c->options[k];
    pid_t pid;
    a->value[k] = optarg ? optarg : "";
    if (o->is_pid) {
        int code = source_parse_pid(c, optarg, &pid);
        if (code >= 0)
            return code;
        if (*first)
            return command_misuse(c, "-p is given twice: use one process id");
        *first = optarg;
    }
    if (o->many && !add_many(a, o->name, optarg))
        return command_misuse(c, "--%s is given more than %d times", o->name, ARGUMENTS_MANY);
    return -1;
}

/* The options as getopt_long() takes them. Returns their number. */
static size_t make_options(const struct command *c, bool stop_at_word, struct option *longs, char *shorts,
                           size_t room)
{
    size_t n = 0, s = 0;
    s += (size_t)snprintf(shorts, room, "%s:h", stop_at_word ? "+" : "");
    for (const struct option_doc *o = c->options; o->name; o++, n++) {
        int value = o->letter ? o->letter : FIRST_LONG + (int)n;
        longs[n] = (struct option){o->name, o->value ? required_argument : no_argument, NULL, value};
        if (o->letter)
            s += (size_t)snprintf(shorts + s, room - s, "%c%s", o->letter, o->value ? ":" : "");
    }
    longs[n] = (struct option){"help", no_argument, NULL, 'h'};
    return n;
}

/* Several unknown options are named together. Any other error ends it: it is not known where the next option begins. */
static int parse_options(const struct command *c, int argc, char **argv, bool stop_at_word,
                         struct arguments *a)
{
    struct option longs[OPTIONS_MAX + 1] = {{0}};
    char shorts[2 * OPTIONS_MAX + 4], *first = NULL;
    const size_t n = make_options(c, stop_at_word, longs, shorts, sizeof(shorts));
    int bad = -1;
    optind = 0;
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
        if (found == 'h' && bad < 0) {
            struct sink out = sink_to_file(stdout);
            print_help(c);
            return command_written(&out, EXIT_DONE);
        }
        size_t k = 0;
        while (k < n && longs[k].val != found)
            k++;
        if (k == n && found != 'h') {
            bad = report_bad_option(c, found, argv);
            if (found == ':' || (optopt > 0 && optopt < FIRST_LONG))
                return bad;
            continue;
        }
        /* "--opt=--" is a value; in "--opt --" the value was forgotten. */
        if (optarg && optarg == argv[optind - 1] && !strcmp(optarg, "--"))
            return report_missing_value(c, argv[optind - 2]);
        const int code = k < n ? take_option(c, a, k, &first) : -1;
        if (code >= 0)
            return code;
    }
    if (first) /* getopt moved all options before the arguments, so the slot before them is free */
        argv[--optind] = first;
    a->rest = argv + optind;
    a->n_rest = argc - optind;
    return bad;
}

int command_parse(const struct command *c, int argc, char **argv, bool stop_at_word, struct arguments *a)
{
    *a = (struct arguments){0};
    command_gather_begin();
    int code = command_gather_end(c, parse_options(c, argc, argv, stop_at_word, a));
    if (code < 0)
        code = screen_options_read(c, a);
    return code < 0 ? choose_servers(c, a) : code;
}

const char *command_value(const struct command *c, const struct arguments *a, const char *name)
{
    for (size_t i = 0; c->options[i].name; i++)
        if (!strcmp(c->options[i].name, name))
            return a->value[i];
    return NULL;
}
