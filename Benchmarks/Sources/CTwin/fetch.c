// Reads the identifiers of all matching rows into an array.

#include "twin.h"

int fetch(const char *path, const char *condition) {
  sqlite3 *database = open_database(path, SQLITE_OPEN_READONLY);
  char *sql = sqlite3_mprintf("SELECT id FROM flights WHERE %s ORDER BY id", condition);
  sqlite3_stmt *statement = prepare(database, sql);
  size_t count = 0, capacity = 1024;
  int64_t *identifiers = malloc(capacity * sizeof *identifiers);
  int code;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    if (count == capacity) {
      capacity *= 2;
      identifiers = realloc(identifiers, capacity * sizeof *identifiers);
    }
    if (identifiers == NULL) return 1;
    identifiers[count++] = sqlite3_column_int64(statement, 0);
  }
  check(database, code);
  printf("%zu\n", count);
  free(identifiers);
  sqlite3_finalize(statement);
  sqlite3_free(sql);
  sqlite3_close(database);
  return 0;
}
