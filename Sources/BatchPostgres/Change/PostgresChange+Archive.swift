#if PostgreSQL
package import BatchIdentifiers

extension PostgresChange {
  package struct Archive: Sendable {
    package let table: PostgresTable
    /// The columns that are copied; they have the same names in both tables.
    let columns: [String]
    /// The name of the table whose rows are copied.
    private let source: String

    /// - Throws: `BatchError` of code `unknownEntity`, with the statement to run, if it does not
    ///   exist.
    package static func table(
      named name: String,
      for source: PostgresTable,
      in session: PostgresSession
    ) throws(BatchError) -> PostgresTable {
      do {
        return try PostgresTable(named: name, in: session)
      } catch {
        guard error.code == .unknownEntity, let written = try? WrittenName(name) else {
          throw error
        }
        let sql =
          written.schema.map { PostgresName.qualified($0.exact, written.table.exact) }
          ?? PostgresName.quoted(written.table.exact)
        let meant = error.remedy.flatMap { $0.hasPrefix("did you mean") ? "\($0) Or " : nil } ?? ""
        throw BatchError(
          .unknownEntity,
          "there is no table \(name.quotedForMessage) for the archive",
          remedy: "\(meant)run CREATE TABLE \(sql) (LIKE \(source.sql))"
        ).about(.entity(name))
      }
    }

    /// - Throws: `BatchError` of code `unknownAttribute`, with the statement to run, if a column is
    ///   missing or could change its values.
    package init(_ table: PostgresTable, for source: PostgresTable) throws(BatchError) {
      self.table = table
      self.source = source.name
      var columns: [String] = []
      for column in source.columns {
        guard let own = table.columns.first(where: { $0.name == column.name }) else {
          if column.isGenerated { continue }
          let name = PostgresName.quoted(column.name)
          throw BatchError(
            .unknownAttribute,
            "the archive \(table.title.quotedForMessage) has no column \(column.name.quotedForMessage)",
            remedy: "run ALTER TABLE \(table.sql) ADD COLUMN \(name) \(column.type)"
          ).about(.entity(table.name))
        }
        // The archive computes this column itself.
        if own.isGenerated { continue }
        guard own.keepsValues(of: column) else {
          let name = PostgresName.quoted(column.name)
          throw BatchError(
            .unknownAttribute,
            "the archive \(table.title.quotedForMessage) has \(own.type) for \(column.name.quotedForMessage),"
              + " which could change values of \(column.type)",
            remedy: "run ALTER TABLE \(table.sql) ALTER COLUMN \(name) TYPE \(column.type)"
          ).about(.entity(table.name))
        }
        columns.append(column.name)
      }
      self.columns = columns
    }
  }
}

extension PostgresChange.Archive {
  var copy: RowCopy {
    let returned = columns.map { (PostgresName.qualified(source, $0), $0) }
    return RowCopy(table: table.sql, returned: returned, action: "archived")
  }
}

extension PostgresColumn {
  /// Whether the column stores each value of another column unchanged, or refuses it; an assignment
  /// rounds numbers, and cuts times, to the type of the column without an error.
  fileprivate func keepsValues(of other: PostgresColumn) -> Bool {
    // Without a length or a scale in parentheses, a type has room for each value.
    if type == other.type || baseType == other.baseType && !type.contains("(") { return true }
    // A text is either refused as too long or stored unchanged.
    let texts = ["text", "character varying"]
    if type == "text" || type == "character varying" { return true }
    if type.hasPrefix(texts[1]), texts.contains(where: other.type.hasPrefix) { return true }
    let numbers = ["smallint", "integer", "bigint", "numeric"]
    if let own = numbers.firstIndex(of: type), let place = numbers.firstIndex(of: other.type) {
      return place < own
    }
    return type == "double precision" && other.type == "real"
  }
}
#endif
