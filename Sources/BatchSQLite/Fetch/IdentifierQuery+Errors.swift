import BatchIdentifiers

extension IdentifierQuery {
  /// An error of fetching or counting rows, placed at the caller's condition if that cannot be
  /// computed for a row.
  func located(_ error: BatchError) -> BatchError {
    guard let predicatePlace, let sqlite = error.sqlite, sqlite.isAboutRows else { return error }
    var error = error
    error.message += ", for a row to which the condition was applied"
    error.place = predicatePlace
    if sqlite.message.hasPrefix("malformed JSON") {
      error.remedy = "read JSON only where it is valid: CASE WHEN json_valid(…) THEN … END"
    }
    return error
  }

  /// The error for rowids that do not ascend, although SQLite finds them in order.
  func outOfOrder(in connection: Connection) -> BatchError {
    BatchError(
      .notADatabase,
      "the database is damaged: the rowids of \"\(entity.name)\" are not in their order",
      at: connection.path,
      remedy: "check it with PRAGMA integrity_check and restore a backup"
    )
  }

  func tooLong(_ byteCount: Int) -> BatchError {
    let columns = key.columns.map(SQLName.standard)
    let length = columns.map { "coalesce(length(CAST(\($0) AS BLOB)), 0)" }
    return BatchError(
      .unstableKey,
      "a row of \"\(entity.name)\" has a key of \(byteCount.grouped) bytes in"
        + " \(columns.joined(separator: ", ")); the maximum is \(EncodedKey.maximumByteCount.grouped)",
      remedy: "leave such rows out with \(length.joined(separator: " + ")) < 500000"
    )
  }
}
