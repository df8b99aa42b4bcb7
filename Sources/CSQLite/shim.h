// The system's SQLite, with nothing of our own but what Swift cannot call.
#ifndef CSQLITE_SHIM_H
#define CSQLITE_SHIM_H
#include <sqlite3.h>

/// Switches the triggers of a connection on or off: `sqlite3_db_config` takes a list of arguments that
/// varies, and Swift calls no such function.
static inline int batch_sqlite3_enable_triggers(sqlite3 *database, int are_enabled) {
  return sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, are_enabled, (int *)0);
}

/// Loads an extension into a connection, without letting SQL load any; a message must be freed with
/// `sqlite3_free`.
static inline int batch_sqlite3_load_extension(sqlite3 *database, const char *path, char **message) {
#ifdef __APPLE__
  // Apple's SQLite loads none, and has no such function.
  *message = sqlite3_mprintf("%s", "this SQLite loads no extensions");
  return SQLITE_ERROR;
#else
  int status = sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, (int *)0);
  if (status == SQLITE_OK) status = sqlite3_load_extension(database, path, 0, message);
  sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, (int *)0);
  return status;
#endif
}

/// Has a connection leave the write-ahead log as it is when it is closed.
static inline int batch_sqlite3_keep_log(sqlite3 *database) {
  return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}

/// Whether the header of a database says that it has a write-ahead log: 1, or 0, also if it cannot be read.
///
/// Read through the file that SQLite has open: who opens and closes a file gives up all locks of the process
/// on it.
static inline int batch_sqlite3_has_log(sqlite3 *database) {
  sqlite3_file *file = 0;
  unsigned char version = 0;
  int status = sqlite3_file_control(database, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (status != SQLITE_OK || !file || !file->pMethods) return 0;
  // https://www.sqlite.org/fileformat.html#file_format_version_numbers
  return file->pMethods->xRead(file, &version, 1, 18) == SQLITE_OK && version == 2;
}
#endif
