/// Writes the identifiers of a list as text.
///
///     var writer = IdentifierTextWriter(list, format: .uri)
///     while let text = try writer.next() { print(bytes: text) }
public struct IdentifierTextWriter: Sendable {
  private let list: PackedIdentifiers
  private let format: IdentifierTextFormat
  private let end: Int
  private var position: Int
  /// The text before and after the key in every line.
  private let prefix: [UInt8]
  private let middle: [UInt8]
  private let suffix: [UInt8]
  private var text: [UInt8] = []
  private var integers: [Int64] = []
  private var keys = EncodedKeys()
  private var reader = EncodedKey.ComponentReader()

  /// Makes a writer for the identifiers at some positions, or for all.
  ///
  /// - Precondition: The range lies within `0..<count` of the list.
  public init(_ list: IdentifierList, format: IdentifierTextFormat, in range: Range<Int>? = nil) {
    self.init(list.packed, format: format, in: range)
  }

  /// For keys that may be in a file; optionally writes them as keys of another entity.
  package init(
    _ list: PackedIdentifiers,
    format: IdentifierTextFormat,
    in range: Range<Int>? = nil,
    of entity: String? = nil
  ) {
    let space =
      entity.map {
        IdentifierSpace(storeIdentifier: list.space.storeIdentifier, entityName: $0)
      } ?? list.space
    self.list = list
    self.format = format
    position = range?.lowerBound ?? 0
    end = range?.upperBound ?? list.count
    precondition(position >= 0 && end <= list.count, "positions out of range")
    var uri: [UInt8] = []
    PersistentIdentifier.appendPrefix(of: space.domain, to: &uri)
    uri.append(UInt8(ascii: "p"))
    switch format {
    case .key:
      prefix = []
      middle = []
      suffix = []
    case .uri:
      prefix = uri
      middle = []
      suffix = []
    case .json:
      prefix = Array(#"{"implementation":{"primaryKey":"p"#.utf8)
      var text = Array(#"","uriRepresentation":""#.utf8)
      text += uri
      middle = text
      text = Array(#"","isTemporary":false"#.utf8)
      if let store = space.storeIdentifier {
        text += Array(#","storeIdentifier":"#.utf8)
        JSONString.append(store, to: &text)
      }
      text += Array(#","entityName":"#.utf8)
      JSONString.append(space.entityName, to: &text)
      suffix = text + Array("}}".utf8)
    }
  }

  /// Returns the next lines, each with its newline, or nil at the end.
  ///
  /// - Throws: ``BatchError`` with code `.fileAccess` or `.damagedFile` if the list cannot be read.
  /// - Complexity: O(1) memory: a few thousand lines at a time.
  public mutating func next() throws(BatchError) -> [UInt8]? {
    guard position < end else { return nil }
    let range = position..<min(position + SegmentCoding.plainCount, end)
    text.removeAll(keepingCapacity: true)
    switch list.header.keyKind {
    case .integer:
      integers.removeAll(keepingCapacity: true)
      try list.appendIntegers(in: range, to: &integers)
      for key in integers {
        appendLine { text, _ in KeyReference.append(key, to: &text) }
      }
    case .encoded:
      keys.removeAll()
      try list.appendEncodedKeys(in: range, to: &keys)
      let keys = keys
      for index in keys.indices {
        appendLine { text, reader in
          KeyReference.append(keys.span(at: index), reader: &reader, to: &text)
        }
      }
    }
    position = range.upperBound
    return text
  }

  private mutating func appendLine(
    _ appendKey: (inout [UInt8], inout EncodedKey.ComponentReader) -> Void
  ) {
    text.append(contentsOf: prefix)
    appendKey(&text, &reader)
    if format == .json {
      text.append(contentsOf: middle)
      appendKey(&text, &reader)
    }
    text.append(contentsOf: suffix)
    text.append(UInt8(ascii: "\n"))
  }
}
