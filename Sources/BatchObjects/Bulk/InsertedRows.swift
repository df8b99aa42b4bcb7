import BatchRuns
import BatchIdentifiers
import BatchPlatform
import BatchSQLite

/// A column that the rows of a batch insertion set.
///
/// Looking up a property by its key path, and its codec by its type, takes longer than inserting
/// the value. So a column is looked up once, and found again by the object of the key path, which
/// is the same whenever the same line of code runs.
@usableFromInline
class InsertedColumn {
  /// The name of the attribute or relationship.
  let name: String
  let slot: Int
  /// The attribute, whose codec must be able to read the value; nil for a relationship.
  fileprivate let attribute: MappedAttribute?
  private let alwaysFit: StorageClasses
  /// Whether the same record has the same value whenever it is read; a date may be that of the call.
  fileprivate var isStable: Bool { true }
  /// The objects of its key path, one for each line of code that sets the property.
  private var properties: [AnyKeyPath] = []

  init(_ attribute: MappedAttribute? = nil, name: String, slot: Int) {
    self.attribute = attribute
    alwaysFit = attribute?.alwaysFit ?? []
    self.name = name
    self.slot = slot
  }

  fileprivate func isKnown(by property: AnyKeyPath) -> Bool {
    for known in properties where known === property { return true }
    return false
  }

  fileprivate func note(_ property: AnyKeyPath) {
    // A key path may also be made for each row.
    if properties.count < 8 { properties.append(property) }
  }

  fileprivate func fits(_ value: SQLValue) -> Bool {
    if case .real(let number) = value, number.isNaN { return false }
    if alwaysFit.contains(value.storageClass) { return true }
    return attribute.map { $0.codec.fits(value) } ?? true
  }
}

@usableFromInline
final class InsertedAttribute<Property>: InsertedColumn {
  @usableFromInline let codec: AttributeCodec<Property>

  fileprivate override var isStable: Bool {
    Property.self != Date.self && Property.self != Date?.self
  }

  fileprivate init(_ attribute: MappedAttribute, _ codec: AttributeCodec<Property>, slot: Int) {
    self.codec = codec
    super.init(attribute, name: attribute.name, slot: slot)
  }
}

/// A row that is not inserted, numbered within its chunk.
struct InsertionProblem {
  let number: Int
  let error: BatchError
  /// What the error is about, if that is known.
  var property: String?
  var value: SQLValue?
}

extension [UInt8] {
  fileprivate mutating func append(
    _ tag: UInt8,
    _ number: UInt64,
    _ rest: some Sequence<UInt8> = EmptyCollection()
  ) {
    append(tag)
    for shift in stride(from: 0, to: 64, by: 8) {
      append(UInt8(truncatingIfNeeded: number >> shift))
    }
    append(contentsOf: rest)
  }
}

/// The rows of a chunk of a batch insertion, as values for columns.
///
/// Rows that set the same columns in the same order have the same shape, and share a statement.
/// This is one value, so that setting a property takes one access to the object that holds it.
struct InsertedChunk {
  struct Row {
    /// Its number among the rows that were filled, and those that could not be.
    let number: Int
    /// The number of the row's shape.
    let shape: Int
    /// Where its values start.
    let start: Int
  }

  private(set) var shapes: [[InsertedColumn]] = []
  private(set) var rows: [Row] = []
  private(set) var values: [SQLValue] = []
  /// The rows that could not be filled, ascending.
  private(set) var problems: [InsertionProblem] = []
  /// The number of bytes of texts and blobs.
  private(set) var byteCount = 0

  // The row that is being filled.
  private var start = 0
  private var current: [InsertedColumn] = []
  /// The columns of a shape that begins with those set so far, and its number.
  private var expected: [InsertedColumn] = []
  private var expectedShape: Int?

  var count: Int { rows.count + problems.count }

  var heldBytes: Int { byteCount + values.count * MemoryLayout<SQLValue>.stride }

  /// Forgets the rows, but not the shapes that those of the next chunk probably have.
  mutating func removeAll() {
    rows.removeAll(keepingCapacity: true)
    values.removeAll(keepingCapacity: true)
    problems.removeAll()
    byteCount = 0
    if shapes.count > 100 {
      shapes.removeAll()
      expectedShape = nil
    }
  }

  mutating func beginRow() {
    start = values.count
    current.removeAll(keepingCapacity: true)
    if expectedShape == nil, let last = rows.last?.shape {
      expectedShape = last
      expected = shapes[last]
    }
  }

  /// Forgets the row that was begun.
  mutating func abandonRow() {
    values.removeLast(values.count - start)
  }

  /// Notes that the row that was begun could not be filled.
  mutating func endRow(with problem: InsertionProblem) {
    abandonRow()
    problems.append(problem)
  }

  /// A hash of the row that was filled last, after those before it.
  func hashOfLast(after seed: UInt64) -> UInt64 {
    var bytes: [UInt8] = []
    if let problem = problems.last, problem.number == count - 1 { bytes.append(0) }
    if let row = rows.last, row.number == count - 1 {
      for (column, value) in zip(shapes[row.shape], values[row.start...]) where column.isStable {
        bytes.append(UInt8(truncatingIfNeeded: column.slot))
        switch value {
        case .null: bytes.append(0)
        case .integer(let number): bytes.append(1, UInt64(bitPattern: number))
        case .real(let number): bytes.append(2, number.bitPattern)
        case .text(let text): bytes.append(3, UInt64(text.utf8.count), text.utf8)
        case .invalidText(let text): bytes.append(4, UInt64(text.count), text)
        case .blob(let blob): bytes.append(5, UInt64(blob.count), blob)
        }
      }
    }
    return XXHash64.hash(bytes, seed: seed)
  }

  mutating func endRow() {
    if let expectedShape, expected.count == current.count {
      rows.append(Row(number: count, shape: expectedShape, start: start))
      return
    }
    let shape = shapes.firstIndex { shape in
      shape.count == current.count && zip(shape, current).allSatisfy { $0 === $1 }
    }
    if shape == nil { shapes.append(current) }
    rows.append(Row(number: count, shape: shape ?? shapes.count - 1, start: start))
    expectedShape = nil
  }

  /// The column that the next value probably belongs to.
  var expectedColumn: InsertedColumn? {
    expectedShape != nil && current.count < expected.count ? expected[current.count] : nil
  }

  mutating func append(_ value: SQLValue, to column: InsertedColumn) {
    switch value {
    case .text(let text): byteCount += text.utf8.count
    case .invalidText(let bytes), .blob(let bytes): byteCount += bytes.count
    case .null, .integer, .real: break
    }
    if expectedColumn === column {
      current.append(column)
      values.append(value)
      return
    }
    if let earlier = current.firstIndex(where: { $0.slot == column.slot }) {
      values[start + earlier] = value
      return
    }
    expectedShape = nil
    current.append(column)
    values.append(value)
  }
}

/// Fills the rows of a batch insertion.
///
/// Only the code that knows the type of a property is generic: it is compiled for the type in the
/// module that sets it.
@usableFromInline
final class InsertedRows {
  /// The number of bytes of texts and blobs to hold.
  static let byteLimit = 16 << 20

  let entity: ModelEntity
  let container: ModelContainer
  private(set) var chunk = InsertedChunk()
  private let mapping: ModelMapping
  private var columns: [InsertedColumn] = []
  /// The first problem of the row that is being filled.
  private var problem: InsertionProblem?

  init(of mapping: ModelMapping, _ entity: ModelEntity, in container: ModelContainer) {
    self.mapping = mapping
    self.entity = entity
    self.container = container
  }

  func removeAll() { chunk.removeAll() }

  /// Fills a row; returns false if there are no more.
  ///
  /// The error of a property that it sets becomes a problem of the chunk.
  ///
  /// - Throws: The error of `fill`.
  func fillRow(_ fill: () throws -> Bool) throws -> Bool {
    problem = nil
    chunk.beginRow()
    if try fill() {
      chunk.abandonRow()
      return false
    }
    if let problem { chunk.endRow(with: problem) } else { chunk.endRow() }
    return true
  }

  /// Notes that the row could not be filled.
  func noteFailure(_ error: any Error) {
    chunk.endRow(with: .init(number: chunk.count, error: BatchError(thrownByClosure: error)))
  }

  private func note(_ error: BatchError, of column: InsertedColumn? = nil, _ value: SQLValue? = nil)
  {
    guard problem == nil else { return }
    problem = .init(number: chunk.count, error: error, property: column?.name, value: value)
  }

  /// The column of a property that the same line of code has set before.
  @usableFromInline
  func column(knownBy property: AnyKeyPath) -> InsertedColumn? {
    // Most rows set the same properties in the same order.
    if let column = chunk.expectedColumn, column.isKnown(by: property) { return column }
    for column in columns where column.isKnown(by: property) { return column }
    return nil
  }

  /// The column of a property; nil after an error.
  @usableFromInline
  func column<Property>(
    _ property: AnyKeyPath,
    of _: Property.Type
  ) -> InsertedAttribute<Property>? {
    guard problem == nil else { return nil }
    do throws(BatchError) {
      guard let attribute = mapping.attributes[property],
        let codec = attribute.codec as? AttributeCodec<Property>
      else { throw mapping.unregistered(property) }
      for column in columns where column.name == attribute.name {
        guard let column = column as? InsertedAttribute<Property> else { continue }
        column.note(property)
        return column
      }
      let slot = try settableSlot(ofColumn: attribute.column, attribute.name)
      let column = InsertedAttribute(attribute, codec, slot: slot)
      column.note(property)
      columns.append(column)
      return column
    } catch {
      note(error)
      return nil
    }
  }

  @usableFromInline
  func append(_ value: SQLValue, to column: InsertedColumn) {
    guard column.fits(value) else {
      if let attribute = column.attribute {
        var error = mapping.misfit(attribute)
        error.message += " (\(column.name) is \(value.shortForMessage))"
        note(error, of: column, value)
      }
      return
    }
    chunk.append(value, to: column)
  }

  /// Sets a relationship.
  func set<Model>(_ relationship: BatchAssignment<Model>) {
    guard problem == nil else { return }
    do throws(BatchError) {
      let (name, column, value) = try relationship.resolved(
        for: entity,
        in: container,
        lookingUpIn: nil
      )
      guard case .constant(let stored) = value else { return }
      let slot = try settableSlot(ofColumn: column, name)
      if let known = columns.first(where: { $0.slot == slot && $0.name == name }) {
        append(stored, to: known)
      } else {
        let column = InsertedColumn(name: name, slot: slot)
        columns.append(column)
        append(stored, to: column)
      }
    } catch {
      note(error)
    }
  }

  private func settableSlot(ofColumn column: String, _ name: String) throws(BatchError) -> Int {
    let slot = entity.slot(ofColumn: column)
    guard let slot, !entity.generatedSlots.contains(slot), entity.concrete?.slot != slot else {
      throw BatchError(
        .immutableAttribute,
        "attribute \(name.quotedForMessage) cannot be set",
        at: entity.entity.name
      )
    }
    return slot
  }
}
