import BatchPlatform
import CSQLite

/// The functions that statements on a Core Data store call: one that makes the bytes of a UUID, and
/// Core Data's own, called by the triggers of derived attributes.
///
/// Core Data's functions report a trigger's changes to its contexts. Here there are none, so the
/// functions do nothing.
enum CoreDataFunctions {
  /// Converts a UUID written as text to its sixteen bytes; other values stay unchanged.
  static let uuidBytes = "_batch_uuid_bytes"

  private static let told = [
    "NSCoreDataDATriggerUpdatedAffectedObjectValue",
    "NSCoreDataDATriggerInsertUpdatedAffectedObjectValue",
    "NSCoreDataTriggerUpdateAffectedObjectValue",
  ]

  static func register(in database: OpaquePointer) -> Int32 {
    for name in told {
      let status = unsafe sqlite3_create_function_v2(
        database,
        name,
        5,
        SQLITE_UTF8,
        nil,
        { call, _, _ in unsafe sqlite3_result_null(call) },
        nil,
        nil,
        nil
      )
      guard status == SQLITE_OK else { return status }
    }
    let status = unsafe sqlite3_create_function_v2(
      database,
      "NSCoreDataNow",
      0,
      SQLITE_UTF8,
      nil,
      { call, _, _ in
        unsafe sqlite3_result_double(call, Date.now.timeIntervalSinceReferenceDate)
      },
      nil,
      nil,
      nil
    )
    guard status == SQLITE_OK else { return status }
    return unsafe sqlite3_create_function_v2(
      database,
      uuidBytes,
      1,
      SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
      nil,
      { call, _, arguments in
        guard let value = unsafe arguments?[0] else { return }
        guard unsafe sqlite3_value_type(value) == SQLITE_TEXT,
          let text = unsafe sqlite3_value_text(value),
          let uuid = UUID(uuidString: unsafe String(cString: text))
        else { return unsafe sqlite3_result_value(call, value) }
        unsafe withUnsafeBytes(of: uuid.uuid) { bytes in
          unsafe sqlite3_result_blob64(
            call,
            bytes.baseAddress,
            UInt64(bytes.count),
            Statement.transient
          )
        }
      },
      nil,
      nil,
      nil
    )
  }
}
