import BatchIdentifiers

extension Connection {
  /// Converts an error of SQLite to one that names the trigger, view, index or table behind it.
  ///
  /// SQLite's message says which function or table is missing, but not what uses it. A statement
  /// that does not name it may fire a trigger that does.
  func explained(_ error: SQLiteError) -> BatchError {
    if error.message == "no query solution", let error = namingCollation(error) {
      return explained(error)
    }
    let plain = BatchError(error, database: path)
    let missing = MissingName(error.message)
    let isDamaged = error.resultCode == .SQLITE_CORRUPT_VTAB
    guard missing != nil || isDamaged else { return plain }
    let statement = error.sql.map { SQLWords($0).all } ?? []
    guard missing?.isAsked(by: statement) != true, let objects = try? schemaObjects() else {
      return plain
    }
    func chosen(_ isWanted: (SchemaObject) -> Bool) -> [SchemaObject] {
      let used = objects.used(by: statement).filter(isWanted)
      return used.isEmpty ? objects.filter(isWanted) : used
    }
    let culprits = chosen { object in
      missing.map { object.asks(for: $0) } ?? (object.module != nil)
    }
    if culprits.isEmpty { return plain }
    var explained = plain
    if let missing {
      explained.message += ", \(missing.clause(about: culprits))"
      explained.advice = missing.advice(about: culprits)
    } else {
      explained.code = .damagedVirtualTable
      let names = culprits.map(\.indexTitle).joined(separator: " or ")
      explained.message = "\(names) is out of step with its rows (\(error.message))"
      // A table that cannot even be connected accepts no command.
      let canRebuild = error.operation != "prepare"
      explained.remedy = culprits.map { $0.repair(rebuilding: canRebuild) }
        .joined(separator: ", or ")
    }
    return explained
  }

  /// The error with the unknown collation of a table's key; without it, SQLite cannot plan the
  /// statement, and does not say why.
  private func namingCollation(_ failed: SQLiteError) -> SQLiteError? {
    let statement = failed.sql.map { SQLWords($0).all } ?? []
    let words = (try? schemaObjects())?.used(by: statement).flatMap(\.words) ?? []
    for (word, name) in zip(words, words.dropFirst()) where word == "collate" {
      do throws(BatchError) {
        _ = try prepare("SELECT '' = '' COLLATE \(SQLName.quoted(name))")
      } catch {
        guard let found = error.sqlite, found.message.hasSuffix(": \(name)") else { continue }
        return SQLiteError(
          resultCode: found.resultCode,
          message: found.message,
          operation: found.operation,
          sql: failed.sql
        )
      }
    }
    return nil
  }
}

extension SchemaObject {
  private var isFullText: Bool { ["fts3", "fts4", "fts5"].contains(module) }

  fileprivate var indexTitle: String {
    "the \(isFullText ? "full-text index" : "virtual table") \(name.quotedForMessage)"
  }

  /// How to repair a virtual table that contradicts the rows that it indexes.
  fileprivate func repair(rebuilding canRebuild: Bool) -> String {
    let table = SQLName.standard(name)
    let keepsNoText = words.indices.contains { words[$0...].starts(with: ["content", "=", ""]) }
    if canRebuild, isFullText, !keepsNoText {
      return "rebuild it: INSERT INTO \(table)(\(table)) VALUES('rebuild')"
    }
    return "drop \(table), then make and fill it again"
  }
}
