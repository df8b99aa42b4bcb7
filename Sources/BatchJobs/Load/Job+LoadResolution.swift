package import BatchIdentifiers
package import BatchRuns

extension LoadedFiles {
  /// How far the files are read when a load is resolved.
  package enum Extent: Sendable {
    /// Until their records are found; the closure says whether to give up.
    case whole(isInterrupted: @Sendable () -> Bool)
    /// Until the names of their values are found.
    case names
    /// Not at all: they are as the run recorded them.
    case recorded(LoadedFiles)
  }

  /// The files of a load with at least the names of their values: a wrong name is told before large
  /// files are read.
  package init(_ load: Job.Load, reading extent: Extent) throws(BatchError) {
    if case .recorded(let files) = extent { self = files } else { try self.init(namesOf: load) }
  }

  /// The same files with their records, as far as those are wanted.
  package func completed(_ load: Job.Load, reading extent: Extent) throws(BatchError) -> LoadedFiles
  {
    guard case .whole(let isInterrupted) = extent else { return self }
    return try LoadedFiles(scanning: load, isInterrupted: isInterrupted)
  }

  /// The records, numbered from 1.
  package func list(inStore identifier: String) -> PackedIdentifiers {
    .records(recordCount, inStore: identifier)
  }
}

extension PackedIdentifiers {
  /// Records, numbered from 1: however many, they take a few bytes.
  package static func records(_ count: Int, inStore identifier: String) -> PackedIdentifiers {
    var builder = IdentifierListBuilder(storeIdentifier: identifier, entityName: "record")
    builder.append(numbersTo: count)
    return builder.finishPacked()
  }
}

extension Job.Load {
  /// What a column of the table gets.
  package enum Source: Sendable {
    /// The value of a field, by its index.
    case field(Int)
    case expression(String, place: String)
  }

  /// Resolves the columns that the load sets, in the order of its statement.
  ///
  /// - Parameters:
  ///   - fields: The names of the records' values.
  ///   - job: The job.
  ///   - column: The column of a name, if it can be set.
  ///   - value: The value of a column.
  /// - Returns: The columns and their values.
  /// - Throws: The errors of `column` and `value`, with the place in the job.
  package func resolved<Column, Value>(
    _ fields: [String],
    of job: Job,
    column: (String) throws(BatchError) -> Column,
    value: (Source, Column) throws(BatchError) -> Value
  ) throws(BatchError) -> [(column: Column, value: Value)] {
    guard let columns else {
      return try fields.indices.map { index throws(BatchError) in
        let found: Column
        do throws(BatchError) {
          found = try column(fields[index])
        } catch {
          var error = error
          error.message =
            "the files have a value \(fields[index].quotedForMessage), and \(error.message)"
          error.remedy =
            Self.delimiter(of: fields).map { "set action.delimiter to \"\($0)\"" }
            ?? "name the columns to set in action.columns: { \"column\": \"expression\" }; "
            + (error.remedy ?? "")
          throw error.located(at: job.place(of: .into))
        }
        return (found, try value(.field(index), found))
      }
    }
    return try columns.map { assignment throws(BatchError) in
      let place = job.place(of: .columns(assignment.column))
      do throws(BatchError) {
        let found = try column(assignment.column)
        return (found, try value(.expression(assignment.expression, place: place), found))
      } catch {
        throw error.located(at: place)
      }
    }
  }

  /// What separates the fields of files whose header seems to be one field; nil for others.
  private static func delimiter(of fields: [String]) -> String? {
    guard fields.count == 1 else { return nil }
    let delimiters = [";": ";", "\t": "\\t", "|": "|", ",": ","]
    return delimiters.first { fields[0].contains($0.key) }?.value
  }

  /// The types of the fields; `type` gives those of columns.
  package func types(
    of fields: [String],
    _ job: Job,
    ofColumn type: (Int) -> Job.ValueType
  ) throws(BatchError) -> [Job.ValueType] {
    if let name = types.keys.sorted().first(where: { !fields.contains($0) }) {
      throw BatchError(
        .unknownAttribute,
        "the files have no value \(name.quotedForMessage)",
        at: job.place(of: JobPath("action", "types", name)),
        remedy: remedyForUnknownName(name, among: fields, kind: "values")
      )
    }
    return fields.indices.map { types[fields[$0]] ?? type($0) }
  }

  // MARK: Conflicts

  /// The clause of an INSERT for rows that exist; empty if these are errors.
  ///
  /// - Parameters:
  ///   - job: The job.
  ///   - table: The table's name, for errors.
  ///   - primaryKey: The columns of its primary key; nil without one.
  ///   - columns: The columns that are set.
  ///   - quoted: Quotes a name.
  ///   - isSame: Whether two names are of one column.
  /// - Returns: The clause, with a space before it.
  /// - Throws: `BatchError` of code `unstableKey` or `unknownAttribute` if no row could be found.
  package func conflictClause(
    of job: Job,
    into table: String,
    primaryKey: [String]?,
    setting columns: [String],
    quoted: (String) -> String,
    isSame: (String, String) -> Bool
  ) throws(BatchError) -> String {
    switch onConflict {
    case .fail: return ""
    case .ignore: return " ON CONFLICT DO NOTHING"
    case .update(let named):
      let place = job.place(of: JobPath("action", "onConflict"))
      guard let key = named ?? primaryKey, !key.isEmpty else {
        throw BatchError(
          .unstableKey,
          "\(table.quotedForMessage) has no primary key by which a row could be found",
          at: place,
          remedy: "name the columns of a unique index: { \"update\": [\"email\"] }"
        )
      }
      func has(_ names: [String], _ name: String) -> Bool { names.contains { isSame($0, name) } }
      if let missing = key.first(where: { !has(columns, $0) }) {
        throw BatchError(
          .unknownAttribute,
          "the load sets no \(missing.quotedForMessage), by which it would find the row to update",
          at: place,
          remedy: "set it in action.columns, or name the columns of another unique index"
        )
      }
      let target = " ON CONFLICT (\(key.map(quoted).joined(separator: ", "))) DO "
      let others = columns.filter { !has(key, $0) }.map(quoted)
      if others.isEmpty { return target + "NOTHING" }
      return target
        + "UPDATE SET \(others.map { "\($0) = excluded.\($0)" }.joined(separator: ", "))"
    }
  }

  /// The error for columns by which ``conflictClause(of:into:primaryKey:setting:quoted:isSame:)`` would
  /// find rows, and which no index keeps unique.
  package static func noUniqueIndex(of table: String, _ job: Job) -> BatchError {
    BatchError(
      .unstableKey,
      "no unique index of \(table.quotedForMessage) has just these columns",
      at: job.place(of: JobPath("action", "onConflict")),
      remedy: "name the columns of one, or create one: without it, several rows could be meant"
    )
  }
}
