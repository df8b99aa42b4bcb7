/// Writes Thrift's compact protocol, whose fields are numbered by their distance to the one before.
struct Thrift: ~Copyable {
  enum Kind: UInt8 {
    case yes = 1
    case no = 2
    case i16 = 4
    case i32 = 5
    case i64 = 6
    case binary = 8
    case list = 9
    case structure = 12
  }

  var bytes = Store<UInt8>()
  private var lastField = 0

  private mutating func start(_ field: Int, _ kind: Kind) {
    let distance = field - lastField
    precondition((1...15).contains(distance))
    bytes.append(UInt8(distance) << 4 | kind.rawValue)
    lastField = field
  }

  mutating func i16(_ field: Int, _ value: Int) { integer(field, .i16, value) }

  mutating func i32(_ field: Int, _ value: Int) { integer(field, .i32, value) }

  mutating func i64(_ field: Int, _ value: Int) { integer(field, .i64, value) }

  private mutating func integer(_ field: Int, _ kind: Kind, _ value: Int) {
    start(field, kind)
    bytes.append(zigzag: Int64(value))
  }

  mutating func boolean(_ field: Int, _ value: Bool) { start(field, value ? .yes : .no) }

  mutating func binary(_ field: Int, _ value: [UInt8]) {
    start(field, .binary)
    element(value)
  }

  /// Elements must follow.
  mutating func list(_ field: Int, _ kind: Kind, count: Int) {
    start(field, .list)
    bytes.append(UInt8(min(count, 15)) << 4 | kind.rawValue)
    if count >= 15 { bytes.append(varint: UInt64(count)) }
  }

  mutating func element(_ value: Int) { bytes.append(zigzag: Int64(value)) }

  mutating func element(_ value: [UInt8]) {
    bytes.append(varint: UInt64(value.count))
    bytes.append(value)
  }

  /// A structure as an element of a list, or at the top.
  mutating func element(_ fields: (inout Thrift) -> Void) {
    let outer = lastField
    lastField = 0
    fields(&self)
    bytes.append(0)
    lastField = outer
  }

  mutating func structure(_ field: Int, _ fields: (inout Thrift) -> Void = { _ in }) {
    start(field, .structure)
    element(fields)
  }

  /// A structure whose bytes were written before.
  mutating func structure(_ field: Int, written: [UInt8]) {
    start(field, .structure)
    bytes.append(written)
  }

  /// Ends the structure at the top, where its fields are not in one closure.
  mutating func end() { bytes.append(0) }
}
