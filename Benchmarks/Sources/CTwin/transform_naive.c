// The usual loop: select a chunk, compute, run a prepared UPDATE per row, commit.

#include "twin.h"

struct row {
  int64_t id, delay;
  char text[32];
};

// One thread, one connection. `select_all` reads all columns, like `SELECT *`, although three would do.
int transform_naive(const char *path, int all_columns, int select_all) {
  sqlite3 *database = open_for_writing(path);
  sqlite3_stmt *select = prepare(
      database, select_all
                    ? "SELECT * FROM flights WHERE id > ?1 ORDER BY id LIMIT 1000"
                    : "SELECT id, dep_delay, distance, air_time FROM flights WHERE id > ?1 "
                      "ORDER BY id LIMIT 1000");
  sqlite3_stmt *update = prepare(
      database, all_columns ? "UPDATE flights SET arr_delay = ?2, tailnum = ?3 WHERE id = ?1"
                            : "UPDATE flights SET arr_delay = ?2 WHERE id = ?1");
  int dep_delay = select_all ? DEP_DELAY : 1, distance = select_all ? DISTANCE : 2,
      air_time = select_all ? AIR_TIME : 3;
  static struct row rows[CHUNK];
  int64_t last = INT64_MIN;
  long changed = 0;
  for (;;) {
    int count = 0, code;
    sqlite3_bind_int64(select, 1, last);
    while ((code = sqlite3_step(select)) == SQLITE_ROW) {
      struct row *row = &rows[count++];
      row->id = sqlite3_column_int64(select, ID);
      if (all_columns) {
        int64_t sum = 0;
        for (int column = 0; column < COLUMNS; column++) sum += part_of_delay(select, column);
        row->delay = sum % 1000;
        snprintf(row->text, sizeof row->text, "%s-%s", sqlite3_column_text(select, CARRIER),
                 sqlite3_column_text(select, DEST));
      } else {
        row->delay = delay_of_three(sqlite3_column_int64(select, dep_delay),
                                    sqlite3_column_double(select, distance),
                                    sqlite3_column_int64(select, air_time));
      }
    }
    check(database, code);
    sqlite3_reset(select);
    if (count == 0) break;
    execute(database, "BEGIN IMMEDIATE");
    for (int i = 0; i < count; i++) {
      sqlite3_bind_int64(update, 1, rows[i].id);
      sqlite3_bind_int64(update, 2, rows[i].delay);
      if (all_columns) sqlite3_bind_text(update, 3, rows[i].text, -1, SQLITE_STATIC);
      check(database, sqlite3_step(update));
      sqlite3_reset(update);
    }
    execute(database, "COMMIT");
    last = rows[count - 1].id;
    changed += count;
  }
  printf("%ld\n", changed);
  sqlite3_finalize(select);
  sqlite3_finalize(update);
  sqlite3_close(database);
  return 0;
}
