import BatchRuns
import BatchIdentifiers
import BatchSQLite

/// Reports the rows that a batch request changes, in its result and in the history of the store.
///
/// The statements report changed rows in their `RETURNING` clause, so only actual changes are
/// reported.
final class BatchReport {
  final class Rows {
    let entity: ModelEntity
    let kind: HistoryChange.Kind
    /// The columns to return; empty if the identities of the rows are not needed.
    let returning: String
    fileprivate let key: EntityKey?
    /// The index of the returned column that determines the concrete entity.
    fileprivate let concreteColumn: Int?
    /// The attributes of deleted rows that the history preserves, and their positions, by concrete
    /// entity.
    fileprivate let tombstones: [String: [(attribute: String, column: Int)]]
    fileprivate let attributes: [String]
    fileprivate var list: IdentifierListBuilder?

    fileprivate init(
      _ entity: ModelEntity,
      _ kind: HistoryChange.Kind,
      attributes: [String],
      listing: Bool,
      historyOf container: ModelContainer?
    ) {
      self.entity = entity
      self.kind = kind
      self.attributes = attributes
      // Rows without an identity can be changed with others, but not reported.
      key = listing || container != nil ? entity.entity.key : nil
      var columns = key?.columns ?? []
      var concreteColumn: Int?
      var tombstones: [String: [(attribute: String, column: Int)]] = [:]
      if key != nil, let container {
        if let concrete = entity.concrete {
          concreteColumn = columns.count
          columns.append(entity.columns[concrete.slot])
        }
        let names = entity.concrete.map { Set($0.names.values) } ?? [entity.entity.name]
        for name in names.sorted() where kind == .delete {
          let member = container.entities[entity.store][name]
          for (_, attribute) in member?.declared ?? [] where attribute.isPreserved {
            tombstones[name, default: []].append((attribute.name, columns.count))
            columns.append(attribute.column)
          }
        }
      }
      self.concreteColumn = concreteColumn
      self.tombstones = tombstones
      returning = columns.isEmpty ? "" : " RETURNING \(SQLName.list(columns))"
      if listing, let key {
        list = IdentifierListBuilder(
          storeIdentifier: entity.space.storeIdentifier ?? "",
          entityName: entity.entity.name,
          keyKind: key.isRowID ? .integer : .encoded
        )
      }
    }

    fileprivate func finish() -> IdentifierList? { list.take()?.finish() }
  }

  /// Whether the store has a history that includes the request.
  let tracksHistory: Bool
  private let type: BatchResultType
  private let container: ModelContainer
  private var history: HistoryLog?
  private var encoder = EncodedKey.Encoder()
  let requested: Rows
  private var cascaded: [Rows] = []
  private var nullified: [Rows] = []
  private var count = 0

  init(
    _ type: BatchResultType,
    _ entity: ModelEntity,
    _ kind: HistoryChange.Kind,
    attributes: [String] = [],
    in container: ModelContainer
  ) {
    self.type = type
    self.container = container
    tracksHistory =
      entity.store < container.configurations.count
      && container.configurations[entity.store].tracksHistory
    requested = Rows(
      entity,
      kind,
      attributes: attributes,
      listing: type == .identifiers,
      historyOf: tracksHistory ? container : nil
    )
  }

  func addCascaded(_ entity: ModelEntity) -> Rows {
    cascaded.append(rows(of: entity, .delete, attributes: []))
    return cascaded[cascaded.count - 1]
  }

  func addNullified(_ entity: ModelEntity, attributes: [String]) -> Rows {
    nullified.append(rows(of: entity, .update, attributes: attributes))
    return nullified[nullified.count - 1]
  }

  private func rows(
    of entity: ModelEntity,
    _ kind: HistoryChange.Kind,
    attributes: [String]
  ) -> Rows {
    Rows(
      entity,
      kind,
      attributes: attributes,
      listing: type == .identifiers,
      historyOf: tracksHistory ? container : nil
    )
  }

  func finish() -> BatchResult {
    func lists(_ rows: [Rows]) -> [IdentifierList] {
      rows.compactMap { $0.finish() }.filter { !$0.isEmpty }
    }
    return BatchResult(
      count: type == .status ? nil : count,
      identifiers: requested.finish(),
      cascaded: lists(cascaded),
      nullified: lists(nullified),
      kind: requested.kind
    )
  }

  func beginTransaction(by author: String?, in connection: Connection) {
    history = tracksHistory ? HistoryLog(author: author, in: connection) : nil
  }

  /// Forgets what was written of a transaction, since that was rolled back.
  func beginAgain() { history?.beginAgain() }

  /// Runs a bound statement, and reports the rows that it changes.
  ///
  /// - Parameters:
  ///   - statement: The statement, with the columns of `rows` in its RETURNING clause.
  ///   - rows: The rows to report.
  ///   - kind: The kind of change, if it differs from that of `rows`.
  ///   - attributes: The attributes that are set, if they differ from those of `rows`.
  ///   - connection: The connection of the statement.
  /// - Returns: The number of changed rows.
  /// - Throws: An error of SQLite.
  @discardableResult
  func run(
    _ statement: borrowing Statement,
    of rows: Rows,
    as kind: HistoryChange.Kind? = nil,
    attributes: [String]? = nil,
    in connection: Connection
  ) throws(BatchError) -> Int {
    var changed = 0
    if rows.returning.isEmpty {
      try statement.run()
      changed = connection.changes
    } else {
      var rowIDs: [Int64] = []
      while try statement.step() {
        changed += 1
        try note(statement, of: rows, kind ?? rows.kind, attributes ?? rows.attributes, &rowIDs)
        if rowIDs.count == 10_000 { Self.append(&rowIDs, to: rows) }
      }
      Self.append(&rowIDs, to: rows)
    }
    if rows === requested { count += changed }
    return changed
  }

  private func note(
    _ statement: borrowing Statement,
    of rows: Rows,
    _ kind: HistoryChange.Kind,
    _ attributes: [String],
    _ rowIDs: inout [Int64]
  ) throws(BatchError) {
    guard let key = rows.key else { return }
    if key.isRowID, rows.list != nil { rowIDs.append(statement.integer(at: 0)) }
    guard !key.isRowID || history != nil else { return }
    encoder.removeAll()
    for column in key.columns.indices { statement.appendKeyComponent(at: column, to: &encoder) }
    if !key.isRowID { rows.list?.append(.encoded(encoder.key)) }
    guard history != nil else { return }
    let name = rows.concreteColumn.flatMap { rows.entity.concrete?.names[statement.value(at: $0)] }
    let concrete = name ?? rows.entity.entity.name
    var values: [String: SQLValue] = [:]
    switch kind {
    case .insert: break
    case .update: for attribute in attributes { values[attribute] = .null }
    case .delete:
      for (attribute, column) in rows.tombstones[concrete] ?? [] {
        values[attribute] = statement.value(at: column)
      }
    }
    try history?.append(kind, entityName: concrete, key: encoder.bytes, values)
  }

  /// Appends rowids in ascending order, which makes lists smallest and look-ups fastest.
  private static func append(_ rowIDs: inout [Int64], to rows: Rows) {
    rowIDs.sort()
    for rowID in rowIDs { rows.list?.append(rowID) }
    rowIDs.removeAll(keepingCapacity: true)
  }
}
