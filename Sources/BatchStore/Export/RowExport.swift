package import BatchEngine
package import BatchIdentifiers

/// Reads the rows of chunks and writes them as lines, in the order of the list.
package struct RowExport: Sendable {
  private let entity: Entity
  private let key: EntityKey
  private let columns: [String]
  private let format: RowFormat
  private let predicate: SQLExpression?
  private let recheck: Recheck
  private let parameters: [String: SQLValue]

  /// An export of some attributes of the rows of `entity`; the predicate must have been checked.
  package init(
    entity: Entity,
    key: EntityKey,
    attributes: [Attribute],
    format: RowFormat,
    predicate: SQLExpression?,
    recheck: Recheck,
    parameters: [String: SQLValue]
  ) {
    self.entity = entity
    self.key = key
    self.columns = attributes.map(\.column)
    self.format = format
    self.predicate = recheck == .off ? nil : predicate
    self.recheck = recheck
    self.parameters = parameters
  }

  /// What a file begins with, before any row.
  package var header: [UInt8] { RowEncoder(format: format, columns: columns).header }

  /// The statement that reads rows found by keys of this shape.
  package func sql(for keys: ChunkKeys) -> String {
    // The predicate is a column rather than a condition, which tells rows that no longer satisfy
    // it from rows that are gone. IS TRUE is the truth of a WHERE, where 0.5 is true.
    let check = predicate.map { ", \($0.sql) IS TRUE" } ?? ""
    // The key says which of a range a row is.
    let rowID = if keys.isRange { ", \(SQLName.quoted(key.columns[0]))" } else { "" }
    let order = if keys.isRange { " ORDER BY \(SQLName.quoted(key.columns[0]))" } else { "" }
    return """
      SELECT \(SQLName.list(columns))\(check)\(rowID) FROM \(SQLName.quoted(entity.table)) \
      WHERE \(keys.condition(key: key))\(order)
      """
  }

  /// The lines of one chunk.
  package struct Lines: Sendable {
    package internal(set) var bytes: [UInt8] = []
    /// What became of the identifiers.
    package internal(set) var outcomes = Outcomes()
    /// Those that failed, by their numbers within the chunk, ascending.
    package internal(set) var failures: [(number: Int, error: BatchError)] = []
  }

  /// The lines of one chunk, read in one transaction.
  ///
  /// A part that fails is read again in halves, down to single identifiers, as in a change.
  ///
  /// - Parameters:
  ///   - keys: The keys of the chunk.
  ///   - policy: What becomes of the lines if an identifier fails.
  ///   - byteLimit: How many bytes are held; the row that comes to as many is the last.
  ///   - connection: The worker's connection.
  /// - Returns: The lines, in the order of the list, of as many of the first identifiers as the
  ///   outcomes are.
  /// - Throws: The error of the row that is one too many, or whatever is about more than a row.
  package func lines(
    for keys: ChunkKeys,
    onFailure policy: FailurePolicy = .failChunk,
    holding byteLimit: Int = .max,
    in connection: Connection
  ) throws(BatchError) -> Lines {
    try connection.transaction(.deferred) { () throws(BatchError) in
      var lines = Lines()
      var bisection = Bisection(0..<keys.identifierCount, policy)
      while lines.bytes.count < byteLimit, let part = bisection.next() {
        let start = lines.bytes.count
        do throws(BatchError) {
          let partKeys = part.count == keys.identifierCount ? keys : keys.part(part)
          lines.outcomes += try append(
            partKeys,
            to: &lines.bytes,
            upTo: byteLimit,
            in: connection
          )
        } catch {
          guard error.isAboutRows else { throw error }
          lines.bytes.removeLast(lines.bytes.count - start)
          try bisection.failed(part, error) { $0.about(keys.key(at: part.lowerBound)) }
        }
      }
      lines.failures = bisection.failures.map { ($0.position, $0.error) }
      lines.outcomes.failed = lines.failures.count
      return lines
    }
  }

  /// Appends the lines of some keys, until there are as many bytes as are held.
  ///
  /// - Returns: What became of the identifiers up to there.
  private func append(
    _ keys: ChunkKeys,
    to lines: inout [UInt8],
    upTo byteLimit: Int,
    in connection: Connection
  ) throws(BatchError) -> Outcomes {
    let encoder = RowEncoder(format: format, columns: columns)
    let statement = try connection.prepare(sql(for: keys))
    try statement.bind(parameters)
    var outcomes = Outcomes()
    var reached = keys.identifierCount
    let keyColumn = columns.count + (predicate == nil ? 0 : 1)
    try keys.forEachBinding(of: statement, key: key) { numbers throws(BatchError) in
      while lines.count < byteLimit, try statement.step() {
        if predicate == nil || statement.integer(at: columns.count) != 0 {
          encoder.append(statement, to: &lines)
          outcomes.succeeded += 1
        } else {
          outcomes.noLongerMatching += 1
        }
        guard lines.count >= byteLimit else { continue }
        var numbers = numbers
        let rowID = keys.isRange ? statement.integer(at: keyColumn) : 0
        reached = (numbers.next(rowID) ?? 0) + 1
      }
    }
    guard outcomes.total <= reached else { throw BatchError.ambiguousKey(of: entity, key) }
    outcomes.vanished = reached - outcomes.succeeded - outcomes.noLongerMatching
    try recheck.check(outcomes)
    return outcomes
  }
}
