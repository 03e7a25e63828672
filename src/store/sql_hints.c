/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/sql_hints.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "query/field.h"
#include "store/schema.h"
#include "store/sql_statement.h"
#include "store/table_rows.h"

#define BLANKS       " \t\r\n\f"
#define EXAMPLES     "man allium-sql has examples"
#define COLUMNS_MAX  256 /* of all tables together; there are some 120 */
#define OWNERS_BYTES 400

#define ROWS_TABLES      16 /* a recording has one, of the tool that made it */
#define TABLE_NAME_BYTES 64

/* What follows the words that `said` begins with; NULL: it begins otherwise. */
static const char *behind(const char *said, const char *words)
{
    size_t len = strlen(words);
    return strncmp(said, words, len) ? NULL : said + len;
}

/* Of "main.cell" or "c.id" the last part. */
static const char *last_part(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* Those of rows, which not every recording has (table_rows.h). Returns how many. */
static size_t list_rows(sqlite3 *db, struct query_field *tables, char names[][TABLE_NAME_BYTES])
{
    struct sql s = {0};
    size_t n = 0;
    if (!sql_prepare(&s, db, ROWS_TABLES_QUERY))
        while (n < ROWS_TABLES && sql_row(&s)) {
            snprintf(names[n], TABLE_NAME_BYTES, "%s", sql_get_text(&s));
            tables[n] = (struct query_field){.name = names[n]};
            n++;
        }
    sql_finalize(&s);
    return n;
}

static void add_table(struct buf *out, sqlite3 *db, const char *name)
{
    struct query_field tables[SCHEMA_TABLES + ROWS_TABLES] = {{.name = NULL}};
    char names[ROWS_TABLES][TABLE_NAME_BYTES];
    for (int t = 0; t < SCHEMA_TABLES; t++)
        tables[t].name = schema_table_name((enum schema_table)t);
    size_t n = SCHEMA_TABLES + list_rows(db, tables + SCHEMA_TABLES, names);
    size_t meant = query_field_closest(tables, n, name, strlen(name));
    if (meant != QUERY_NO_FIELD)
        buf_printf(out, "; did you mean %s?", tables[meant].name);
    buf_addstr(out, meant == QUERY_NO_FIELD ? "; tables are " : " tables are ");
    for (size_t t = 0; t < n; t++)
        buf_printf(out, "%s%s", t ? ", " : "", tables[t].name);
}

struct columns {
    char text[SCHEMA_TABLES][SCHEMA_COLUMNS_BYTES];
    struct query_field all[COLUMNS_MAX];
    size_t n;
};

/* Of all tables. Appends to `owners` those tables that have a column of that name. */
static void list_columns(struct columns *c, sqlite3 *db, const char *name, struct buf *owners)
{
    c->n = 0;
    for (int t = 0; t < SCHEMA_TABLES; t++) {
        char *rest = c->text[t];
        if (schema_columns(db, (enum schema_table)t, rest))
            continue;
        for (char *one; (one = strtok_r(rest, ", ", &rest)) && c->n < COLUMNS_MAX;) {
            c->all[c->n++] = (struct query_field){.name = one};
            if (!strcasecmp(one, name))
                buf_printf(owners, "%s%s", owners->len ? ", " : "", schema_table_name((enum schema_table)t));
        }
    }
}

static void add_column(struct buf *out, sqlite3 *db, const char *name)
{
    struct columns c;
    struct buf owners = BUF_INIT;
    list_columns(&c, db, name, &owners);
    size_t meant = query_field_closest(c.all, c.n, name, strlen(name));
    if (owners.len)
        buf_printf(out, "; it is one of %s", buf_str(&owners));
    else if (meant != QUERY_NO_FIELD)
        buf_printf(out, "; did you mean %s?", c.all[meant].name);
    else
        buf_addstr(out, "; `allium sql 'PRAGMA table_info(TABLE)'` lists the columns of a table");
    buf_release(&owners);
}

static void add_syntax(struct buf *out, const char *sql, int at)
{
    size_t begin = strspn(sql, BLANKS ";");
    if (at < 0 || (size_t)at != begin)
        buf_addstr(out, "; " EXAMPLES);
    else if (sql[begin] == '.')
        buf_addstr(out, "; PRAGMA table_list lists the tables, PRAGMA table_info(TABLE) the columns of one");
    else
        buf_addstr(out, "; a query begins with SELECT, WITH or VALUES: " EXAMPLES);
}

/* Where advice is the same whatever the names are. */
static void add_general(struct buf *out, const char *said)
{
    static const struct {
        const char *said, *advice;
    } known[] = {
        {"ambiguous column name: ", "write TABLE.COLUMN"},
        {"no such function: ", "use functions of SQLite, see https://sqlite.org/lang_corefunc.html"},
        {"wrong number of arguments to function ", "see https://sqlite.org/lang_corefunc.html"},
        {"misuse of aggregate", "write aggregates in HAVING, or in a subquery of FROM"},
        {"integer overflow", "use 1.0 * VALUE for a real number"},
        {"string or blob too big", "the limit is 1 MiB: use substr()"},
        {"LIKE or GLOB pattern too complex", "the limit is 1000 bytes"},
        {"unrecognized token: ", EXAMPLES},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (behind(said, known[i].said)) {
            buf_printf(out, "; %s", known[i].advice);
            return;
        }
}

void sql_hints_add(struct buf *out, sqlite3 *db, const char *sql, const char *said, int *at)
{
    const char *name;
    char first = *at >= 0 && (size_t)*at < strlen(sql) ? sql[*at] : '\0';
    if (!strcmp(said, "incomplete input")) {
        size_t end = strlen(sql);
        while (end && strchr(BLANKS, sql[end - 1]))
            end--;
        *at = (int)end;
        buf_addstr(out, "incomplete query: a word, a ) or a */ is missing at the end; " EXAMPLES);
        return;
    }
    if (behind(said, "unrecognized token: ") && first && strchr("'\"`[", first)) {
        buf_printf(out, "the %s that begins here is not closed", first == '[' ? "bracket" : "quotation mark");
        return;
    }
    buf_add(out, said, strnlen(said, SQL_HINTS_SAID_BYTES));
    if ((name = behind(said, "no such table: ")))
        add_table(out, db, last_part(name));
    else if ((name = behind(said, "no such column: ")))
        add_column(out, db, last_part(name));
    else if (behind(said, "near \""))
        add_syntax(out, sql, *at);
    else
        add_general(out, said);
}
