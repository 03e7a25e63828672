/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/schema.h"

#include "store/table_rows.h"

#include <stdio.h>
#include <string.h>

#define STATEMENT_BYTES 2048

static const struct {
    const char *name, *key, *sql;
} tables[SCHEMA_TABLES] = {
    [SCHEMA_META] = {"meta", "key",
                     "CREATE TABLE meta(\n"
                     "  key TEXT PRIMARY KEY, value\n"
                     ") WITHOUT ROWID"},
    [SCHEMA_STRING] = {"string", "id",
                       "CREATE TABLE string(\n"
                       "  id INTEGER PRIMARY KEY, text TEXT\n"
                       ")"},
    [SCHEMA_IMAGE] =
        {"image", "id",
         "CREATE TABLE image(\n"
         "  id INTEGER PRIMARY KEY, image_id INTEGER, parent_image_id INTEGER,\n"
         "  pid INTEGER, parent_pid INTEGER,\n"
         "  comm INTEGER REFERENCES string, exe INTEGER REFERENCES string,\n"
         "  args INTEGER REFERENCES string, state INTEGER,\n"
         "  began_ns INTEGER, taken_ns INTEGER, off_ns INTEGER, peak_ns INTEGER, peak_bytes REAL,\n"
         "  operations_begun INTEGER, operations_done INTEGER, cold_ns INTEGER,\n"
         "  ledger_bytes INTEGER, ledger_limit_bytes INTEGER, ledger_full INTEGER REFERENCES string,\n"
         "  rss_anon_bytes INTEGER, torn_samples INTEGER, inconsistent INTEGER,\n"
         "  lost_samples INTEGER, lost_live INTEGER, lost_frees_unseen INTEGER,\n"
         "  lost_stack_cut INTEGER, lost_stack_broken INTEGER, lost_threads INTEGER,\n"
         "  lost_growth INTEGER, lost_children INTEGER, failed_requests INTEGER, inherited_frees INTEGER\n"
         ")"},
    [SCHEMA_THREAD] = {"thread", "id",
                       "CREATE TABLE thread(\n"
                       "  id INTEGER PRIMARY KEY, image INTEGER REFERENCES image, tid INTEGER,\n"
                       "  name INTEGER REFERENCES string, ordinal INTEGER\n"
                       ")"},
    [SCHEMA_MODULE] = {"module", "id",
                       "CREATE TABLE module(\n"
                       "  id INTEGER PRIMARY KEY, path INTEGER REFERENCES string,\n"
                       "  build_id INTEGER REFERENCES string, size_bytes INTEGER\n"
                       ")"},
    [SCHEMA_MAPPING] =
        {"mapping", "image, ordinal",
         "CREATE TABLE mapping(\n"
         "  image INTEGER REFERENCES image, ordinal INTEGER, module INTEGER REFERENCES module,\n"
         "  start_address INTEGER, bias_bytes INTEGER, PRIMARY KEY(image, ordinal)\n"
         ") WITHOUT ROWID"},
    [SCHEMA_LOCATION] = {"location", "id",
                         "CREATE TABLE location(\n"
                         "  id INTEGER PRIMARY KEY, module INTEGER REFERENCES module,\n"
                         "  image INTEGER REFERENCES image, address INTEGER, exact INTEGER\n"
                         ")"},
    [SCHEMA_LINE] = {"line", "location, position",
                     "CREATE TABLE line(\n"
                     "  location INTEGER REFERENCES location, position INTEGER,\n"
                     "  function INTEGER REFERENCES string, file INTEGER REFERENCES string,\n"
                     "  line_number INTEGER, inlined INTEGER, PRIMARY KEY(location, position)\n"
                     ") WITHOUT ROWID"},
    [SCHEMA_STACK] = {"stack", "id",
                      "CREATE TABLE stack(\n"
                      "  id INTEGER PRIMARY KEY, caller INTEGER REFERENCES stack,\n"
                      "  location INTEGER REFERENCES location\n"
                      ")"},
    [SCHEMA_CELL] = {"cell", "id",
                     "CREATE TABLE cell(\n"
                     "  id INTEGER PRIMARY KEY, image INTEGER REFERENCES image,\n"
                     "  stack INTEGER REFERENCES stack, thread INTEGER REFERENCES thread,\n"
                     "  size_class INTEGER, period_bytes INTEGER,\n"
                     "  allocated_samples INTEGER, allocated_seen_bytes REAL,\n"
                     "  allocated_bytes REAL, allocated_count REAL,\n"
                     "  freed_samples INTEGER, freed_seen_bytes REAL, freed_bytes REAL, freed_count REAL,\n"
                     "  peak_samples INTEGER, peak_seen_bytes REAL, peak_bytes REAL, peak_count REAL,\n"
                     "  temporary_samples INTEGER, temporary_bytes REAL,\n"
                     "  lifetime_0 INTEGER, lifetime_1 INTEGER, lifetime_2 INTEGER, lifetime_3 INTEGER,\n"
                     "  lifetime_4 INTEGER, lifetime_5 INTEGER, lifetime_6 INTEGER, lifetime_7 INTEGER,\n"
                     "  lifetime_8 INTEGER, lifetime_9 INTEGER, lifetime_10 INTEGER, lifetime_11 INTEGER,\n"
                     "  lifetime_12 INTEGER, lifetime_13 INTEGER, lifetime_14 INTEGER, lifetime_15 INTEGER\n"
                     ")"},
    [SCHEMA_LIFETIME] = {"lifetime", "class",
                         "CREATE TABLE lifetime(\n"
                         "  class INTEGER PRIMARY KEY, below_ns INTEGER\n"
                         ")"},
    [SCHEMA_SAMPLE] = {"live_sample", "image, serial",
                       "CREATE TABLE live_sample(\n"
                       "  image INTEGER REFERENCES image, serial INTEGER, cell INTEGER REFERENCES cell,\n"
                       "  address INTEGER, size_bytes INTEGER, slack_bytes INTEGER, born_ns INTEGER,\n"
                       "  PRIMARY KEY(image, serial)\n"
                       ") WITHOUT ROWID"},
    [SCHEMA_FREE] = {"recent_free", "image, serial",
                     "CREATE TABLE recent_free(\n"
                     "  image INTEGER REFERENCES image, serial INTEGER, cell INTEGER REFERENCES cell,\n"
                     "  address INTEGER, size_bytes INTEGER, born_ns INTEGER, freed_ns INTEGER,\n"
                     "  stack INTEGER REFERENCES stack, location INTEGER REFERENCES location,\n"
                     "  thread INTEGER REFERENCES thread, reallocated INTEGER,\n"
                     "  PRIMARY KEY(image, serial)\n"
                     ") WITHOUT ROWID"},
    [SCHEMA_POINT] = {"point", "image, time_ns",
                      "CREATE TABLE point(\n"
                      "  image INTEGER REFERENCES image, time_ns INTEGER,\n"
                      "  live_bytes REAL, allocated_bytes REAL, rss_anon_bytes INTEGER, moment INTEGER,\n"
                      "  PRIMARY KEY(image, time_ns)\n"
                      ") WITHOUT ROWID"},
    [SCHEMA_MOMENT_CELL] =
        {"moment_cell", "moment, cell",
         "CREATE TABLE moment_cell(\n"
         "  moment INTEGER, cell INTEGER REFERENCES cell,\n"
         "  allocated_samples INTEGER, allocated_seen_bytes REAL,\n"
         "  allocated_bytes REAL, allocated_count REAL,\n"
         "  freed_samples INTEGER, freed_seen_bytes REAL, freed_bytes REAL, freed_count REAL,\n"
         "  PRIMARY KEY(moment, cell)\n"
         ") WITHOUT ROWID"},
    [SCHEMA_UNOBSERVED] = {"unobserved", "program, reason",
                           "CREATE TABLE unobserved(\n"
                           "  program INTEGER REFERENCES string, reason INTEGER REFERENCES string,\n"
                           "  processes INTEGER, PRIMARY KEY(program, reason)\n"
                           ") WITHOUT ROWID"},
};

const char *schema_table_name(enum schema_table table)
{
    return tables[table].name;
}

const char *schema_table_key(enum schema_table table)
{
    return tables[table].key;
}

int schema_create(sqlite3 *db)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < SCHEMA_TABLES && !rc; i++)
        rc = sql_execute(db, tables[i].sql);
    return rc;
}

static bool is_ours(const char *name, const char *sql)
{
    for (size_t i = 0; i < SCHEMA_TABLES; i++)
        if (!strcmp(name, tables[i].name))
            return !strcmp(sql, tables[i].sql);
    return false;
}

bool schema_matches(sqlite3 *db, int *rc)
{
    struct sql s;
    size_t ours = 0;
    bool all_ours = true;
    *rc = sql_prepare(&s, db,
                      "SELECT name, sql FROM sqlite_schema WHERE type = 'table'"
                      " UNION ALL SELECT '', '' FROM sqlite_schema WHERE type <> 'table'");
    if (*rc)
        return false;
    /* SQLite itself has refused two tables of one name by now: as many as there are means each of them. */
    while (all_ours && sql_row(&s)) {
        const char *name = sql_get_text(&s), *text = sql_get_text(&s);
        if (rows_is_ours(name, text))
            continue;
        all_ours = is_ours(name, text) && ++ours <= SCHEMA_TABLES;
    }
    *rc = s.rc;
    sql_finalize(&s);
    return all_ours && ours == SCHEMA_TABLES;
}

bool schema_has_meta(sqlite3 *db)
{
    struct sql s;
    bool found = false;
    if (sql_prepare(&s, db, "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name = 'meta'"))
        return false;
    if (sql_row(&s)) {
        const char *name = sql_get_text(&s), *text = sql_get_text(&s);
        found = is_ours(name, text);
    }
    sql_finalize(&s);
    return found;
}

int schema_prepare_scan(struct sql *s, sqlite3 *db, enum schema_table table, const char *columns,
                        const char *where)
{
    char text[STATEMENT_BYTES];
    snprintf(text, sizeof(text), "SELECT %s FROM %s %s ORDER BY %s", columns, tables[table].name, where,
             tables[table].key);
    return sql_prepare(s, db, text);
}

int schema_prepare_walk(struct sql *s, sqlite3 *db, enum schema_table table, const char *where, bool falls)
{
    char text[STATEMENT_BYTES];
    const char *key = tables[table].key;
    int first = (int)strcspn(key, ",");
    snprintf(text, sizeof(text), "SELECT 1 FROM %s %s ORDER BY %.*s%s%s%s", tables[table].name, where, first,
             key, falls ? " DESC" : "", key + first, falls ? " DESC" : "");
    return sql_prepare(s, db, text);
}

int schema_columns(sqlite3 *db, enum schema_table table, char names[static SCHEMA_COLUMNS_BYTES])
{
    struct sql s;
    size_t at = 0;
    int rc = schema_prepare_scan(&s, db, table, "*", "");
    for (int i = 0; !rc && at < SCHEMA_COLUMNS_BYTES && i < sqlite3_column_count(s.stmt); i++)
        at += (size_t)snprintf(names + at, SCHEMA_COLUMNS_BYTES - at, "%s%s", i ? ", " : "",
                               sqlite3_column_name(s.stmt, i));
    sql_finalize(&s);
    return rc ? rc : at < SCHEMA_COLUMNS_BYTES ? SQLITE_OK : SQLITE_TOOBIG;
}

int schema_prepare_put(struct sql *s, sqlite3 *db, enum schema_table table)
{
    char text[STATEMENT_BYTES];
    const char *name = tables[table].name;
    int rc = schema_prepare_scan(s, db, table, "*", "");
    if (rc)
        return rc;
    int width = sqlite3_column_count(s->stmt);
    sql_finalize(s);
    struct insert_vtab *feed;
    rc = insert_vtab_create(&feed, db, name, width);
    snprintf(text, sizeof(text), "INSERT OR REPLACE INTO %s SELECT * FROM feed_%s", name, name);
    rc = rc ? rc : sql_prepare(s, db, text);
    s->feed = feed;
    return rc;
}
