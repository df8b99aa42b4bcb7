// The system's SQLite, with nothing of our own but what Swift cannot call.
#ifndef CSQLITE_SHIM_H
#define CSQLITE_SHIM_H
#include <sqlite3.h>

/// Switches the triggers of a connection on or off: `sqlite3_db_config` takes a list of arguments that
/// varies, and Swift calls no such function.
static inline int batch_sqlite3_enable_triggers(sqlite3 *database, int are_enabled) {
  return sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, are_enabled, (int *)0);
}
#endif
