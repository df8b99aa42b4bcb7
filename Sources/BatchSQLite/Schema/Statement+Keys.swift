package import BatchRuns
package import BatchIdentifiers
import CSQLite

extension Statement {
  /// The key of the current row; its columns must come first in the result.
  package func key(of key: EntityKey) -> PrimaryKey {
    if key.isRowID { return .integer(integer(at: 0)) }
    var encoder = EncodedKey.Encoder()
    for column in key.columns.indices { appendKeyComponent(at: column, to: &encoder) }
    return .encoded(encoder.key)
  }

  /// Appends a column of the current row to a key, byte for byte.
  package func appendKeyComponent(at column: Int, to encoder: inout EncodedKey.Encoder) {
    switch storageClass(at: column) {
    case SQLITE_INTEGER: encoder.append(integer(at: column))
    case SQLITE_FLOAT: encoder.append(real(at: column))
    case SQLITE_TEXT: unsafe encoder.append(textBytes: bytes(at: column))
    case SQLITE_BLOB: unsafe encoder.append(blob: bytes(at: column))
    default: encoder.appendNull()
    }
  }

  /// Binds the components of a key, byte for byte, to the parameters from 1 on.
  package func bind(_ key: PrimaryKey) throws(BatchError) {
    switch key {
    case .integer(let value): try bind(value, at: 1)
    case .encoded(let encoded):
      var status = SQLITE_OK
      var index = 0
      encoded.forEachComponent { component in
        guard status == SQLITE_OK else { return }
        index += 1
        status = bind(component, at: index)
      }
      try check(status)
    }
  }

  func bind(
    _ keys: EncodedKeys,
    _ position: Int,
    slots: [Int],
    with reader: inout EncodedKey.ComponentReader
  ) throws(BatchError) {
    var status = SQLITE_OK
    var index = 0
    unsafe keys.withBytes(at: position) { key in
      unsafe reader.forEachComponent(of: key) { component in
        guard status == SQLITE_OK, index < slots.count else { return }
        status = bind(component, at: slots[index])
        index += 1
      }
    }
    try check(status)
    guard index == slots.count else {
      throw BatchError(
        .invalidIdentifier,
        "the key \(keys[position]) has \(index) components, the entity's has \(slots.count)"
      )
    }
  }

  private func bind(_ component: RawKeyComponent, at index: Int) -> Int32 {
    switch component {
    case .null: bindNull(at: index)
    case .integer(let value): bindInteger(value, at: index)
    case .real(let value): bindReal(value, at: index)
    case .text(let bytes): unsafe bindText(bytes, at: index)
    case .blob(let bytes): unsafe bindBlob(bytes, at: index)
    }
  }
}

extension KeyComponent {
  package init(_ value: SQLValue) {
    switch value {
    case .null: self = .null
    case .integer(let value): self = .integer(value)
    case .real(let value): self = .real(value)
    case .text(let value): self = .text(value)
    case .invalidText(let value): self = .invalidText(value)
    case .blob(let value): self = .blob(value)
    }
  }
}
