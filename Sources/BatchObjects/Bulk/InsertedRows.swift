import BatchRuns
import BatchIdentifiers
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

  fileprivate init(_ attribute: MappedAttribute, _ codec: AttributeCodec<Property>, slot: Int) {
    self.codec = codec
    super.init(attribute, name: attribute.name, slot: slot)
  }
}

/// The rows of a chunk of a batch insertion, as values for columns.
///
/// Rows that set the same columns in the same order have the same shape, and share a statement.
/// This is one value, so that setting a property takes one access to the object that holds it.
struct InsertedChunk {
  struct Row {
    /// The number of the row's shape.
    let shape: Int
    /// Where its values start.
    let start: Int
  }

  private(set) var shapes: [[InsertedColumn]] = []
  private(set) var rows: [Row] = []
  private(set) var values: [SQLValue] = []
  /// The number of bytes of texts and blobs.
  private(set) var byteCount = 0

  // The row that is being filled.
  private var start = 0
  private var current: [InsertedColumn] = []
  /// The columns of a shape that begins with those set so far, and its number.
  private var expected: [InsertedColumn] = []
  private var expectedShape: Int?

  /// Forgets the rows, but not the shapes that those of the next chunk probably have.
  mutating func removeAll() {
    rows.removeAll(keepingCapacity: true)
    values.removeAll(keepingCapacity: true)
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

  mutating func endRow() {
    if let expectedShape, expected.count == current.count {
      rows.append(Row(shape: expectedShape, start: start))
      return
    }
    let shape = shapes.firstIndex { shape in
      shape.count == current.count && zip(shape, current).allSatisfy { $0 === $1 }
    }
    if shape == nil { shapes.append(current) }
    rows.append(Row(shape: shape ?? shapes.count - 1, start: start))
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
  /// The first error of the row that is being filled.
  private var failure: BatchError?

  init(of mapping: ModelMapping, _ entity: ModelEntity, in container: ModelContainer) {
    self.mapping = mapping
    self.entity = entity
    self.container = container
  }

  func removeAll() { chunk.removeAll() }

  /// Fills a row; returns false if there are no more.
  ///
  /// - Throws: The error of `fill`, or of the properties that it sets.
  func fillRow(_ fill: () throws -> Bool) throws -> Bool {
    failure = nil
    chunk.beginRow()
    if try fill() {
      chunk.abandonRow()
      return false
    }
    if let failure { throw failure }
    chunk.endRow()
    return true
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
    guard failure == nil else { return nil }
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
      failure = error
      return nil
    }
  }

  @usableFromInline
  func append(_ value: SQLValue, to column: InsertedColumn) {
    guard column.fits(value) else {
      if failure == nil { failure = column.attribute.map(mapping.misfit) }
      return
    }
    chunk.append(value, to: column)
  }

  /// Sets a relationship.
  func set<Model>(_ relationship: BatchAssignment<Model>) {
    guard failure == nil else { return }
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
      failure = error
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
