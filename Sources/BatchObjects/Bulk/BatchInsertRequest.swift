import BatchJobs
import BatchRuns
public import BatchIdentifiers
import BatchSQLite

/// Inserts many rows, one after another, without objects: Core Data's `NSBatchInsertRequest`.
///
///     var lines = file.lines.makeIterator()
///     let request = BatchInsertRequest<Order> { row in
///       guard let line = lines.next() else { return true }
///       row.set(\.price, to: line.price)
///       return false
///     }
///     let result = try context.execute(request)
///
/// If a row has no value for a column, the column gets its default. Integer keys that are rowids
/// are assigned unless they are set; other keys must be set.
public struct BatchInsertRequest<Model: PersistentModel> {
  /// How to treat a row that violates a unique constraint.
  public enum Conflict: Sendable {
    /// It is an error.
    case error
    /// The existing row stays unchanged.
    case ignore
    /// The existing row gets the values of the new one, and keeps its key.
    ///
    /// This is the row with which any unique index of the table conflicts, whether the class
    /// declares it or not.
    ///
    /// A row of a sub-entity keeps its entity; a row of another entity in the same table is an
    /// error.
    case update

    var resolution: BatchInsertion.Resolution {
      switch self {
      case .error: .fail
      case .ignore: .skip
      case .update: .update
      }
    }
  }

  /// A row to insert.
  ///
  /// A property that is set twice has the last value.
  public struct Row {
    @usableFromInline let rows: InsertedRows

    /// Sets a property.
    @inlinable
    public mutating func set<Property>(_ property: KeyPath<Model, Property>, to value: Property) {
      let column =
        rows.column(knownBy: property) as? InsertedAttribute<Property>
        ?? rows.column(property, of: Property.self)
      if let column { rows.append(column.codec.encode(value), to: column) }
    }

    /// Relates the row to a saved object, or to none, by a to-one relationship with a column in the
    /// row's table.
    public mutating func set<Destination: ManagedObject>(
      _ relationship: KeyPath<Model, Destination?>,
      to object: Destination?
    ) {
      rows.set(BatchAssignment<Model>.set(relationship, to: object))
    }

    /// Relates the row to the object with an identifier.
    public mutating func set<Destination: ManagedObject>(
      _ relationship: KeyPath<Model, Destination?>,
      to identifier: PersistentIdentifier
    ) {
      rows.set(BatchAssignment<Model>.set(relationship, to: identifier))
    }

    /// Relates the row to the object with an identifier, or to none, by the name of the
    /// relationship.
    public mutating func set(relationship name: String, to identifier: PersistentIdentifier?) {
      rows.set(BatchAssignment<Model>.set(relationship: name, to: identifier))
    }
  }

  /// How to treat rows that violate a unique constraint.
  public var conflict = Conflict.error
  /// The kind of result to return.
  public var resultType = BatchResultType.count
  /// The number of rows inserted per transaction; fewer if their values have more than 16 MB.
  public var chunkSize = 5_000
  /// Called after each transaction with the number of rows done since the request began, those left
  /// out by ``Conflict/ignore`` included.
  public var onCommit: ((_ rowCount: Int) -> Void)?
  /// Fills a row, or returns true if there are no more.
  @usableFromInline let fill: (inout Row) throws -> Bool

  /// Inserts the rows that a closure fills, until it returns true; in that call, no row is
  /// inserted.
  @inlinable
  public init(_ fill: @escaping (inout Row) throws -> Bool) {
    self.fill = fill
  }

  /// Inserts a row for each element of a sequence.
  @inlinable
  public init<Elements: Sequence>(
    _ elements: Elements,
    _ fill: @escaping (Elements.Element, inout Row) throws -> Void
  ) {
    var iterator = elements.makeIterator()
    self.fill = { row in
      guard let element = iterator.next() else { return true }
      try fill(element, &row)
      return false
    }
  }
}

extension ModelContext {
  /// Inserts rows in chunks, one transaction each.
  ///
  /// If a row fails, its chunk is rolled back, and earlier chunks stay:
  /// ``BatchIdentifiers/BatchError/insertFailure`` says which row it was and how many rows are done.
  /// The cancellation of the task ends the request before the next chunk. The result counts
  /// inserted and updated rows, but not ignored ones.
  ///
  /// - Throws: The error of the request's closure; `BatchError` with code `unknownAttribute`,
  ///   `immutableAttribute`, `valueMismatch` or `missingKey` for a row; `modelTypeMismatch` for a
  ///   row that would update a row of another entity; `constraint` for a row that the database
  ///   refuses; `interrupted`; `readOnly`; `busy`.
  /// - Complexity: One statement per row; memory for one chunk.
  @discardableResult
  public func execute<Model: PersistentModel>(
    _ request: BatchInsertRequest<Model>
  ) throws -> BatchResult {
    try throwNoted()
    guard request.chunkSize > 0 else {
      throw BatchError(
        .invalidParameter,
        "the chunk size is \(request.chunkSize)",
        remedy: "give 1 or more"
      )
    }
    let entity = try container.writableEntity(named: Model.mapping.entityName)
    let writer = try writableConnection(to: entity.store)
    let report = BatchReport(request.resultType, entity, .insert, in: container)
    var row = BatchInsertRequest<Model>.Row(
      rows: InsertedRows(of: Model.mapping, entity, in: container)
    )
    let insertion = try BatchInsertion(
      row.rows,
      atOnce: request.chunkSize,
      onConflict: request.conflict.resolution,
      report,
      writer
    )
    while !insertion.isDone {
      if Task.isCancelled { throw insertion.interruption() }
      // The caller's closure runs outside the transaction, since others may be waiting for the
      // lock.
      try insertion.fill { try request.fill(&row) }
      do throws(BatchError) {
        try writeChunk(ofStore: entity.store, report) { _ throws(BatchError) in
          try insertion.write()
        }
      } catch {
        throw insertion.located(error)
      }
      if let count = insertion.noteCommit() { request.onCommit?(count) }
    }
    return report.finish()
  }
}
