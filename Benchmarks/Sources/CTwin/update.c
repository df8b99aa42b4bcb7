// The usual loop: chunks of identifiers, a prepared UPDATE for each identifier, a transaction per chunk.

#include "twin.h"

int update(const char *path, const char *condition) {
  sqlite3 *database = open_for_writing(path);
  char *sql = sqlite3_mprintf(
      "SELECT id FROM flights WHERE id > ?1 AND (%s) ORDER BY id LIMIT %d", condition, CHUNK);
  sqlite3_stmt *select = prepare(database, sql);
  sqlite3_stmt *write = prepare(
      database, "UPDATE flights SET arr_delay = coalesce(arr_delay, 0) + 1 WHERE id = ?1");
  int64_t identifiers[CHUNK], last = INT64_MIN;
  long changed = 0;
  for (;;) {
    int count = 0, code;
    sqlite3_bind_int64(select, 1, last);
    while ((code = sqlite3_step(select)) == SQLITE_ROW) {
      identifiers[count++] = sqlite3_column_int64(select, 0);
    }
    check(database, code);
    sqlite3_reset(select);
    if (count == 0) break;
    execute(database, "BEGIN IMMEDIATE");
    for (int i = 0; i < count; i++) {
      sqlite3_bind_int64(write, 1, identifiers[i]);
      check(database, sqlite3_step(write));
      sqlite3_reset(write);
    }
    execute(database, "COMMIT");
    last = identifiers[count - 1];
    changed += count;
  }
  printf("%ld\n", changed);
  sqlite3_finalize(select);
  sqlite3_finalize(write);
  sqlite3_free(sql);
  sqlite3_close(database);
  return 0;
}
