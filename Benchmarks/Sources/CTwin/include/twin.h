// Shared by the twins in C: error handling, and the arithmetic of the transforms.

#ifndef TWIN_H
#define TWIN_H

#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 1000

static inline void check(sqlite3 *database, int code) {
  if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return;
  fprintf(stderr, "sqlite: %s\n", sqlite3_errmsg(database));
  exit(1);
}

static inline sqlite3 *open_database(const char *path, int flags) {
  sqlite3 *database;
  if (sqlite3_open_v2(path, &database, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
    fprintf(stderr, "%s: %s\n", path, sqlite3_errmsg(database));
    exit(1);
  }
  // One of a program's two connections waits for the other.
  sqlite3_busy_timeout(database, 60000);
  return database;
}

static inline void execute(sqlite3 *database, const char *sql) {
  check(database, sqlite3_exec(database, sql, NULL, NULL, NULL));
}

static inline sqlite3_stmt *prepare(sqlite3 *database, const char *sql) {
  sqlite3_stmt *statement;
  check(database, sqlite3_prepare_v2(database, sql, -1, &statement, NULL));
  return statement;
}

// A typical writer: the write-ahead log, and a sync at checkpoints only.
static inline sqlite3 *open_for_writing(const char *path) {
  sqlite3 *database = open_database(path, SQLITE_OPEN_READWRITE);
  execute(database, "PRAGMA journal_mode = WAL");
  execute(database, "PRAGMA synchronous = NORMAL");
  return database;
}

// The columns of the flights, in the order of `SELECT *`.
enum { ID, DEP_DELAY = 6, CARRIER = 10, DEST = 14, AIR_TIME = 15, DISTANCE = 16, COLUMNS = 20 };

// The new arr_delay, from three columns.
static inline int64_t delay_of_three(int64_t dep_delay, double distance, int64_t air_time) {
  return dep_delay + (int64_t)distance / 10 - air_time;
}

// One column's part of the new arr_delay from all columns: a NULL adds nothing, a text its length in bytes.
static inline int64_t part_of_delay(sqlite3_stmt *row, int column) {
  switch (sqlite3_column_type(row, column)) {
    case SQLITE_INTEGER: return sqlite3_column_int64(row, column);
    case SQLITE_FLOAT: return (int64_t)sqlite3_column_double(row, column);
    case SQLITE_TEXT: return sqlite3_column_bytes(row, column);
    default: return 0;
  }
}

int fetch(const char *path, const char *condition);
int update(const char *path, const char *condition);
int transform_naive(const char *path, int all_columns, int select_all);
int transform_best(const char *path, int all_columns);

#endif
