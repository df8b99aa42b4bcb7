package import BatchJobs
package import BatchRuns
package import BatchIdentifiers

/// Reads the rows of chunks and writes them as lines, in list order.
package struct RowExport: Sendable {
  private let entity: Entity
  private let key: EntityKey
  package let columns: [String]
  private let encoder: Encoder
  /// The columns whose values name the folder of a row, by their numbers, and the names before them.
  private let partitions: [(name: String, column: Int)]
  /// The columns whose values 1 and 0 are true and false.
  private let booleans: Set<Int>
  private let predicate: SQLExpression?
  private let recheck: Recheck
  private let parameters: [String: SQLValue]
  /// The copy to read rows from; nil if rows are looked up in the entity.
  private var copy: RowCopy?
  /// The schema that the export requires; nil to accept any.
  private var expected: ExpectedSchema?

  /// How rows are written.
  private enum Encoder: Sendable {
    case lines(RowEncoder, TextCompression)
    case groups(ParquetRowEncoder, RowGroups.Format, [Job.ColumnType])

    func append(
      _ values: ValueBlock,
      _ row: Int,
      number: Int,
      to bytes: inout [UInt8]
    ) throws(BatchError) -> Int {
      switch self {
      case .lines(let encoder, .none): return try encoder.append(values, row, to: &bytes)
      case .lines(let encoder, _):
        let place = TypedRows.beginLine(number, to: &bytes)
        let invalidTexts = try encoder.append(values, row, to: &bytes)
        TypedRows.endLine(place, invalidTexts: invalidTexts, in: &bytes)
        return invalidTexts
      case .groups(let encoder, _, _):
        return try encoder.append(values, row, number: number, to: &bytes)
      }
    }
  }

  /// - Precondition: The predicate has been checked.
  package init(
    entity: Entity,
    key: EntityKey,
    attributes: [Attribute],
    format: Job.ExportFormat,
    partitions: [Job.Partition] = [],
    invalidText: InvalidText = .replace,
    predicate: SQLExpression?,
    recheck: Recheck,
    parameters: [String: SQLValue]
  ) {
    self.entity = entity
    self.key = key
    self.columns = attributes.map(\.column)
    self.partitions = partitions.compactMap { partition in
      attributes.firstIndex { $0.isNamed(partition.column) }.map { (partition.name, $0) }
    }
    booleans = Set(
      attributes.indices.filter {
        entity.kind == .model && attributes[$0].type == CoreDataType.booleanDeclaration
      }
    )
    switch format {
    case .lines(let format, let compression):
      encoder = .lines(
        RowEncoder(
          format: format,
          columns: columns,
          booleans: booleans,
          json: Set(
            attributes.indices.filter { format.json.contains(where: attributes[$0].isNamed) }
          ),
          invalidText: invalidText
        ),
        compression
      )
    case .parquet(let parquet):
      let types = parquet.types(of: attributes)
      encoder = .groups(
        ParquetRowEncoder(
          columns,
          types,
          onMismatch: parquet.onMismatch,
          invalidText: invalidText
        ),
        parquet.format(columns, types),
        types
      )
    }
    self.predicate = recheck == .off ? nil : predicate
    self.recheck = recheck
    self.parameters = parameters
  }

  package func expecting(_ schema: ExpectedSchema) -> RowExport {
    var export = self
    export.expected = schema
    return export
  }

  /// The beginning of a file, before any row.
  package var header: [UInt8] {
    switch encoder {
    case .lines(let encoder, let compression): compression.header(encoder.header)
    case .groups: RowGroups.header
    }
  }

  /// The format of a file whose rows are in groups; nil for a file of plain lines.
  package var format: GroupFormat? {
    switch encoder {
    case .lines(_, let compression): compression.format
    case .groups(_, let format, _): .parquet(format)
    }
  }

  /// The types of the columns of such a file, by their names.
  package var types: [String: String]? {
    guard case .groups(_, _, let types) = encoder else { return nil }
    return Dictionary(zip(columns, types.map(\.name))) { first, _ in first }
  }

  package func sql(for keys: ChunkKeys) -> String { sql(for: keys, of: entity) }

  private func sql(for keys: ChunkKeys, of entity: Entity) -> String {
    let order = if keys.isRange { " ORDER BY \(keys.order(of: key))" } else { "" }
    return """
      SELECT \(selected(for: keys).joined(separator: ", ")) FROM \(entity.rowSource) \
      WHERE \(keys.condition(key: key))\(order)
      """
  }

  /// The columns of the lines, then whether a row still matches, and what identifies the rows of a
  /// range.
  private func selected(for keys: ChunkKeys) -> [String] {
    var selected = columns.map(SQLName.quoted)
    // The predicate is a column instead of a condition, to distinguish rows that no longer match
    // from missing ones. IS TRUE has the same meaning of truth as WHERE, where 0.5 is true.
    if let predicate { selected.append("\(predicate.sql) IS TRUE") }
    if keys.isRange { selected.append(keys.rowID(of: key)) }
    return selected
  }

  /// The same statement, whose rows are collected in a block; an aggregate gets them in the order
  /// in which SQLite finds them.
  private func collectingSQL(for keys: ChunkKeys, of entity: Entity) -> String {
    let condition = keys.condition(key: key)
    if entity.kind == .table, entity.standIn == nil {
      let columns = RowCollector.columns(selected(for: keys))
      return "SELECT \(columns) FROM \(entity.rowSource)\(keys.scan(of: key)) WHERE \(condition)"
    }
    let names = selected(for: keys).indices.map { "c\($0)" }
    let inner = zip(selected(for: keys), names).map { "\($0) AS \($1)" }
    let order = if keys.isRange { " ORDER BY \(keys.order(of: key))" } else { "" }
    // The limit keeps SQLite from ignoring the order.
    return """
      SELECT \(RowCollector.columns(names)) FROM (SELECT \(inner.joined(separator: ", ")) \
      FROM \(entity.rowSource) WHERE \(condition)\(order) LIMIT -1)
      """
  }

  /// The lines of one chunk, read in one transaction.
  ///
  /// Stops at the row whose line reaches `byteLimit` bytes.
  ///
  /// A part that fails is read again in halves, down to single identifiers, as in a change.
  ///
  /// - Returns: The lines, in list order, of as many of the first identifiers as the outcomes
  ///   count.
  /// - Throws: The error of the row that exceeds the allowed failures, or an error that concerns
  ///   more than one row.
  package func lines(
    for keys: ChunkKeys,
    onFailure policy: FailurePolicy = .failChunk,
    holding byteLimit: Int = .max,
    in connection: Connection
  ) throws(BatchError) -> ExportedLines {
    // Copying rows, and measuring whether that is needed, compile statements before the
    // transaction.
    try expected?.verify(in: connection)
    let entity = try prepareRows(in: connection)
    return try connection.transaction(.deferred) { () throws(BatchError) in
      try expected?.verify(in: connection)
      return try lines(
        for: keys,
        of: entity,
        onFailure: policy,
        holding: byteLimit,
        in: connection
      )
    }
  }

  /// The lines of the first rows of a plan, read in the transaction that the connection has.
  func linesOfPlan(
    for keys: ChunkKeys,
    in connection: Connection
  ) throws(BatchError) -> ExportedLines {
    let policy = FailurePolicy.skip(upTo: keys.identifierCount)
    return try lines(for: keys, of: entity, onFailure: policy, holding: .max, in: connection)
  }

  private func lines(
    for keys: ChunkKeys,
    of entity: Entity,
    onFailure policy: FailurePolicy,
    holding byteLimit: Int,
    in connection: Connection
  ) throws(BatchError) -> ExportedLines {
    var lines = ExportedLines()
    var bisection = Bisection(0..<keys.identifierCount, policy)
    var isFull = false
    while !isFull, let part = bisection.next() {
      let start = lines.bytes.count
      do throws(BatchError) {
        let partKeys = part.count == keys.identifierCount ? keys : keys.part(part)
        let read = try append(
          partKeys,
          at: part.lowerBound,
          of: entity,
          to: &lines,
          upTo: byteLimit,
          in: connection
        )
        lines.result.succeeded += read.reached - read.passedOver.counts.passedOver
        lines.result.passedOver.formUnion(read.passedOver, from: part.lowerBound)
        lines.invalidTexts += read.invalidTexts
        isFull = read.isFull
      } catch {
        guard error.isAboutRows else { throw error }
        lines.cut(to: start)
        try bisection.failed(part, error) { $0.about(keys.key(at: part.lowerBound)) }
      }
    }
    lines.result.failures = bisection.failures.map { ($0.position, $0.error) }
    return lines
  }

  /// How many rows are held as values before they are written as lines.
  private static let rowsAtOnce = 1_000

  private struct Read {
    /// The number of identifiers reached, which is the number of the next one.
    var reached = 0
    /// The identifiers among them without a line.
    var passedOver = PassedOver()
    var invalidTexts = 0
    var isFull = false
  }

  /// Appends the lines of a part, whose first identifier has a place in the chunk.
  private func append(
    _ keys: ChunkKeys,
    at place: Int,
    of entity: Entity,
    to lines: inout ExportedLines,
    upTo byteLimit: Int,
    in connection: Connection
  ) throws(BatchError) -> Read {
    var read = Read()
    let count = keys.identifierCount
    for start in stride(from: 0, to: count, by: Self.rowsAtOnce) where !read.isFull {
      let part = start..<min(start + Self.rowsAtOnce, count)
      let keys = part.count == count ? keys : keys.part(part)
      let before = lines.bytes.count
      try append(
        keys,
        from: start,
        at: place,
        of: entity,
        to: &lines,
        upTo: byteLimit,
        &read,
        in: connection
      )
      if start == 0, part.count < count {
        // An array that grows by itself is copied each time it doubles.
        let expected = (lines.bytes.count - before) * count / part.count
        lines.bytes.reserveCapacity(before + min(expected + expected / 16, byteLimit))
      }
    }
    if !read.passedOver.noLongerMatching.isEmpty { try recheck.check(read.passedOver.counts) }
    return read
  }

  private func append(
    _ keys: ChunkKeys,
    from first: Int,
    at place: Int,
    of entity: Entity,
    to lines: inout ExportedLines,
    upTo byteLimit: Int,
    _ read: inout Read,
    in connection: Connection
  ) throws(BatchError) {
    let keys = entity.kind == .table ? try keys.located(by: key, in: entity, connection) : keys
    let count = keys.identifierCount
    let statement = try connection.prepare(collectingSQL(for: keys, of: entity))
    try statement.bind(parameters)
    var rows = ValueBlock(columns: selected(for: keys).count, capacity: count)
    try keys.forEachBinding(of: statement, key: key) { numbers throws(BatchError) in
      if read.isFull { return }
      let found = rows.count
      let collected = try connection.collector.collect(
        from: statement,
        into: &rows,
        upTo: min(byteLimit, Int.max / 2) - lines.bytes.count + rows.bytes.count
      )
      if collected == .tooMany { throw BatchError.ambiguousKey(of: entity, key) }
      var numbers = numbers
      for row in found..<rows.count {
        let rowID = keys.isRange ? rows.word(row, rows.columnCount - 1) : 0
        guard let number = numbers.next(rowID).map({ first + $0 }), number >= read.reached else {
          throw BatchError.ambiguousKey(of: entity, key)
        }
        read.passedOver.vanished.insert(contentsOf: read.reached..<number)
        read.reached = number + 1
        if predicate == nil || rows.word(row, columns.count) != 0 {
          if !partitions.isEmpty {
            lines.enter(try folder(rows, row), number: place + number, at: lines.bytes.count)
          }
          read.invalidTexts += try encoder.append(
            rows,
            row,
            number: place + number,
            to: &lines.bytes
          )
        } else {
          read.passedOver.noLongerMatching.insert(number)
        }
      }
      read.isFull = collected == .some || lines.bytes.count >= byteLimit
    }
    if !read.isFull {
      read.passedOver.vanished.insert(contentsOf: read.reached..<first + count)
      read.reached = first + count
    }
  }
}

extension RowExport {
  /// The folder of a row, by the texts of its values in CSV.
  private func folder(_ values: ValueBlock, _ row: Int) throws(BatchError) -> [UInt8] {
    var folder: [UInt8] = []
    for (name, column) in partitions {
      var text: [UInt8] = []
      let kind = values.kind(row, column)
      switch kind {
      case .null, .unset: break
      case .integer where booleans.contains(column) && 0...1 ~= values.word(row, column):
        text = Array((values.word(row, column) == 1 ? "true" : "false").utf8)
      case .integer: NumberText.append(values.word(row, column), to: &text)
      case .real: NumberText.append(values.real(row, column), to: &text)
      case .text: text += values.bytes(row, column)
      case .blob: unsafe values.withBytes(row, column) { unsafe Base64.append($0, to: &text) }
      }
      let isNull = kind == .null || kind == .unset
      try PartitionFolder.append(name, isNull ? nil : text, to: &folder)
    }
    return folder
  }
}

// MARK: - Where rows are read from

extension RowExport {
  /// How many steps SQLite may take to find a row: enough for a few other rows, such as those of an
  /// aggregate, but not for a whole table.
  private static let stepsPerRow = 1_000
  package static let probedRows = 32

  package var copiesRows: Bool { copy != nil }

  /// The same export, which first copies rows if finding them by key is slow.
  ///
  /// Looks up at most ``probedRows`` keys, which takes a few milliseconds at most.
  ///
  /// - Throws: Errors that concern more than one row.
  package func suited(
    to keys: ChunkKeys,
    in connection: Connection
  ) throws(BatchError) -> RowExport {
    var export = self
    export.copy = nil
    switch key.origin {
    case .rowID, .primaryKey, .uniqueIndex: return export
    case .viewOrigin, .wholeRow, .declared: break
    }
    guard try !isFast(keys, in: connection) else { return export }
    // The condition may use any column.
    var columns = key.columns
    columns += (predicate == nil ? self.columns : entity.attributes.map(\.column))
      .filter { column in !key.columns.contains { SQLName.equal($0, column) } }
    export.copy = RowCopy(of: entity, columns: columns, key: key, parameters: parameters)
    return export
  }

  private func isFast(_ keys: ChunkKeys, in connection: Connection) throws(BatchError) -> Bool {
    let count = keys.identifierCount
    let found = try connection.within(steps: count * Self.stepsPerRow) { () throws(BatchError) in
      let statement = try connection.prepare(sql(for: keys))
      try statement.bind(parameters)
      try keys.forEachBinding(of: statement, key: key) { _ throws(BatchError) in
        do throws(BatchError) {
          while try statement.step() {}
        } catch {
          guard error.isAboutRows else { throw error }
        }
      }
      return true
    }
    return found != nil
  }

  package func prepareRows(in connection: Connection) throws(BatchError) -> Entity {
    guard let copy, try copy.make(in: connection) else { return entity }
    return copy.entity
  }
}
