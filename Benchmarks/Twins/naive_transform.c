// The loop most people would write in C: read a chunk of rows, compute, update each by its id.
//
// usage: naive_transform DATABASE
// cc -O2 -o naive_transform naive_transform.c -lsqlite3
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1000 };

static sqlite3 *db;

static void check(int status) {
  if (status == SQLITE_OK || status == SQLITE_ROW || status == SQLITE_DONE) return;
  fprintf(stderr, "%s\n", sqlite3_errmsg(db));
  exit(1);
}

static void execute(const char *sql) { check(sqlite3_exec(db, sql, NULL, NULL, NULL)); }

static sqlite3_stmt *prepare(const char *sql) {
  sqlite3_stmt *statement;
  check(sqlite3_prepare_v2(db, sql, -1, &statement, NULL));
  return statement;
}

int main(int count, char **arguments) {
  if (count != 2) return 64;
  check(sqlite3_open(arguments[1], &db));
  execute("PRAGMA journal_mode = wal");
  execute("PRAGMA synchronous = normal");
  sqlite3_stmt *read = prepare("SELECT * FROM flights WHERE id > ? ORDER BY id LIMIT ?");
  sqlite3_stmt *update = prepare("UPDATE flights SET arr_delay = ? WHERE id = ?");
  int departure = -1, arrival = -1, air_time = -1;
  for (int column = 0; column < sqlite3_column_count(read); column++) {
    const char *name = sqlite3_column_name(read, column);
    if (!strcmp(name, "dep_delay")) departure = column;
    if (!strcmp(name, "arr_delay")) arrival = column;
    if (!strcmp(name, "air_time")) air_time = column;
  }
  static sqlite3_int64 ids[CHUNK], values[CHUNK];
  sqlite3_int64 last = -1, total = 0;
  for (;;) {
    execute("BEGIN IMMEDIATE");
    int rows = 0;
    check(sqlite3_bind_int64(read, 1, last));
    check(sqlite3_bind_int(read, 2, CHUNK));
    while (sqlite3_step(read) == SQLITE_ROW) {
      // A loop over whole rows looks at every column.
      for (int column = 0; column < sqlite3_column_count(read); column++) {
        switch (sqlite3_column_type(read, column)) {
        case SQLITE_INTEGER: sqlite3_column_int64(read, column); break;
        case SQLITE_FLOAT: sqlite3_column_double(read, column); break;
        case SQLITE_TEXT: sqlite3_column_text(read, column); break;
        }
      }
      ids[rows] = sqlite3_column_int64(read, 0);
      values[rows++] = sqlite3_column_int64(read, arrival) + sqlite3_column_int64(read, departure)
        + sqlite3_column_int64(read, air_time) % 7;
    }
    check(sqlite3_reset(read));
    for (int row = 0; row < rows; row++) {
      check(sqlite3_bind_int64(update, 1, values[row]));
      check(sqlite3_bind_int64(update, 2, ids[row]));
      check(sqlite3_step(update));
      check(sqlite3_reset(update));
    }
    execute("COMMIT");
    if (rows == 0) break;
    last = ids[rows - 1];
    total += rows;
  }
  printf("%lld rows\n", (long long)total);
  return sqlite3_close(db);
}
