/* Work for releases of SQLite: a table, an index, joins, sorting and changes. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const statements[] = {
    "CREATE TABLE word (id INTEGER PRIMARY KEY, text TEXT, size INT)",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120000)"
    " INSERT INTO word SELECT i, printf('%x-%d', i * 2654435761 % 100003, i % 977), i * 7919 % 1009 FROM n",
    "CREATE INDEX by_size ON word (size, text)",
    "SELECT size, count(*), max(text), group_concat(substr(text, 1, 2)) FROM word GROUP BY size ORDER BY 2 DESC, 3",
    "SELECT sum(length(a.text || b.text)) FROM word a JOIN word b ON b.id = a.size * 3 WHERE a.text LIKE '%a%1'",
    "UPDATE word SET text = upper(text) || id WHERE size % 3 = 0",
    "DELETE FROM word WHERE text GLOB '*F*'",
    "SELECT text FROM word ORDER BY text DESC, id",
};

static int count_row(void *count, int columns, char **values, char **names)
{
    (void)values, (void)names;
    *(long *)count += columns;
    return 0;
}

int main(void)
{
    sqlite3 *database;
    long values = 0;
    if (sqlite3_open(":memory:", &database)) return 1;
    for (size_t n = 0; n < sizeof statements / sizeof *statements; n++)
        if (sqlite3_exec(database, statements[n], count_row, &values, NULL)) return fputs(sqlite3_errmsg(database), stderr), 1;
    return printf("%ld\n", values) < 0;
}
