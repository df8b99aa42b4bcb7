import Foundation

/// An extension of SQLite with what applications add to it: the functions of Calibre and GeoPackage and
/// the collation of Anki, as far as schemas call them.
public enum SQLiteExtension {
  /// Puts the extension into a folder, as `own.so`.
  ///
  /// - Returns: Its path.
  @discardableResult
  public static func put(in directory: TemporaryDirectory) throws -> String {
    let path = directory.file("own.so")
    try library.get().write(to: URL(fileURLWithPath: path))
    return path
  }

  /// The compiled extension.
  private static let library = Result {
    let directory = try TemporaryDirectory()
    try directory.write(source, to: "own.c")
    let result = try BatchProgram(
      ["clang", "-shared", "-fPIC", "own.c", "-o", "own.so"],
      of: "/usr/bin/env",
      in: directory
    ).wait()
    guard result.status == 0 else { throw Failure(description: result.errors) }
    return try Data(contentsOf: URL(fileURLWithPath: directory.file("own.so")))
  }

  private struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  private static let source = #"""
    #include <sqlite3ext.h>
    #include <string.h>
    #include <strings.h>
    SQLITE_EXTENSION_INIT1

    static void title_sort(sqlite3_context *call, int count, sqlite3_value **values) {
      const char *text = (const char *)sqlite3_value_text(values[0]);
      if (!text) return;
      char *title = strncmp(text, "The ", 4) ? sqlite3_mprintf("%s", text)
                                             : sqlite3_mprintf("%s, The", text + 4);
      sqlite3_result_text(call, title, -1, sqlite3_free);
    }

    static void uuid4(sqlite3_context *call, int count, sqlite3_value **values) {
      unsigned char bytes[16];
      sqlite3_randomness(16, bytes);
      char *text = sqlite3_mprintf("%02x%02x%02x%02x", bytes[0], bytes[1], bytes[2], bytes[3]);
      sqlite3_result_text(call, text, -1, sqlite3_free);
    }

    static int unicase(void *none, int n, const void *a, int m, const void *b) {
      int order = strncasecmp(a, b, n < m ? n : m);
      return order ? order : n - m;
    }

    /* A GeoPackage point: a header with an envelope, and no body. */
    static void point(sqlite3_context *call, int count, sqlite3_value **values) {
      unsigned char bytes[40] = {'G', 'P', 0, 3};
      double x = sqlite3_value_double(values[0]), y = sqlite3_value_double(values[1]);
      double envelope[4] = {x, x, y, y};
      memcpy(bytes + 8, envelope, 32);
      sqlite3_result_blob(call, bytes, 40, SQLITE_TRANSIENT);
    }

    static void bound(sqlite3_context *call, int count, sqlite3_value **values) {
      if (sqlite3_value_bytes(values[0]) < 40) return;
      double envelope[4];
      memcpy(envelope, (const char *)sqlite3_value_blob(values[0]) + 8, 32);
      sqlite3_result_double(call, envelope[(size_t)sqlite3_user_data(call)]);
    }

    static void is_empty(sqlite3_context *call, int count, sqlite3_value **values) {
      sqlite3_result_int(call, sqlite3_value_bytes(values[0]) < 40);
    }

    int sqlite3_own_init(sqlite3 *db, char **message, const sqlite3_api_routines *api) {
      SQLITE_EXTENSION_INIT2(api);
      int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
      sqlite3_create_function(db, "title_sort", 1, flags, 0, title_sort, 0, 0);
      sqlite3_create_function(db, "uuid4", 0, SQLITE_UTF8, 0, uuid4, 0, 0);
      sqlite3_create_function(db, "gpkg_point", 2, flags, 0, point, 0, 0);
      sqlite3_create_function(db, "ST_IsEmpty", 1, flags, 0, is_empty, 0, 0);
      sqlite3_create_function(db, "ST_MinX", 1, flags, (void *)0, bound, 0, 0);
      sqlite3_create_function(db, "ST_MaxX", 1, flags, (void *)1, bound, 0, 0);
      sqlite3_create_function(db, "ST_MinY", 1, flags, (void *)2, bound, 0, 0);
      sqlite3_create_function(db, "ST_MaxY", 1, flags, (void *)3, bound, 0, 0);
      return sqlite3_create_collation(db, "unicase", SQLITE_UTF8, 0, unicase);
    }
    """#
}
