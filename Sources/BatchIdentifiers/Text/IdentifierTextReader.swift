import BatchPlatform

/// Makes a list of identifiers from text, one per line, in any of the text forms.
///
/// Each line may have a different form. Empty lines are skipped. If lines do not name the store and
/// the entity, as keys do not, the caller must name them; otherwise, they must agree.
///
///     var reader = IdentifierTextReader(storeIdentifier: store, entityName: "orders")
///     try reader.append(bytes)   // as many times as there are bytes
///     let list = try reader.finish()
public struct IdentifierTextReader: ~Copyable {
  /// The maximum line length in bytes: a key of the maximum length with every byte escaped, twice.
  public static let maximumLineByteCount = 8 << 20

  private let name: String
  private var builder: IdentifierListBuilder?
  private let keyKind: IdentifierList.KeyKind?
  private var space: IdentifierSpace?
  private var line: [UInt8] = []
  private var encoder = EncodedKey.Encoder()

  /// The number of lines read so far.
  public private(set) var lineCount = 0

  /// Makes a reader.
  ///
  /// - Parameters:
  ///   - name: The name of the text in errors, such as a file name.
  ///   - storeIdentifier: The store of the identifiers; nil for that of the first URI.
  ///   - entityName: The entity of the identifiers; nil for that of the first URI.
  ///   - keyKind: The kind of the keys; nil to find out from the keys.
  public init(
    name: String = "input",
    storeIdentifier: String? = nil,
    entityName: String? = nil,
    keyKind: IdentifierList.KeyKind? = nil
  ) {
    self.name = name
    self.keyKind = keyKind
    space = entityName.map {
      IdentifierSpace(storeIdentifier: storeIdentifier, entityName: $0)
    }
  }

  /// Reads some bytes of the text; a line may continue in the next call.
  ///
  /// - Throws: ``BatchError`` with code `.invalidIdentifier`, naming the line.
  /// - Complexity: O(n)
  public mutating func append(_ bytes: UnsafeRawBufferPointer) throws(BatchError) {
    try unsafe withSpan(of: bytes) { bytes throws(BatchError) in try append(bytes) }
  }

  private mutating func append(_ bytes: Span<UInt8>) throws(BatchError) {
    var start = 0
    while let end = bytes.firstIndex(of: UInt8(ascii: "\n"), from: start) {
      let part = bytes.extracting(start..<end)
      if line.isEmpty {
        try read(part)
      } else {
        line.append(copying: part)
        try readLine()
      }
      start = end + 1
    }
    line.append(copying: bytes.extracting(droppingFirst: start))
    guard line.count <= Self.maximumLineByteCount else {
      lineCount += 1
      throw error("the line is longer than any identifier")
    }
  }

  /// Reads some bytes of the text.
  ///
  /// - Throws: ``BatchError`` with code `.invalidIdentifier`, naming the line.
  public mutating func append(_ bytes: [UInt8]) throws(BatchError) {
    try append(bytes.span)
  }

  /// Returns the list of all identifiers read, in order.
  ///
  /// - Throws: ``BatchError`` with code `.invalidIdentifier` if the last line is not an identifier,
  ///   or if neither the text nor the caller has named the entity.
  public consuming func finish() throws(BatchError) -> IdentifierList {
    if !line.isEmpty { try readLine() }
    guard let space else { throw entityMissing() }
    guard let built = builder.take() else {
      return .empty(
        storeIdentifier: space.storeIdentifier ?? "",
        entityName: space.entityName,
        keyKind: keyKind ?? .integer
      )
    }
    return built.finish()
  }

  private mutating func readLine() throws(BatchError) {
    let whole = line
    line.removeAll(keepingCapacity: true)
    try read(whole.span)
  }

  private mutating func read(_ bytes: Span<UInt8>) throws(BatchError) {
    lineCount += 1
    var content = bytes
    while let last = content.last, last == UInt8(ascii: "\r") || last == UInt8(ascii: " ") {
      content = content.extracting(droppingLast: 1)
    }
    while content.first == UInt8(ascii: " ") { content = content.extracting(droppingFirst: 1) }
    guard let first = content.first else { return }
    switch first {
    case UInt8(ascii: "x"): try append(uri: content)
    case UInt8(ascii: "{"): try append(json: content)
    default: try append(key: content)
    }
  }

  private mutating func append(key: Span<UInt8>) throws(BatchError) {
    guard space != nil else { throw entityMissing() }
    if let value = KeyReference.integer(key) { return try append(.integer(value)) }
    encoder.removeAll()
    guard KeyReference.parse(key, into: &encoder) else {
      throw error("this is not the text of a key", content: key)
    }
    try append(PrimaryKey.encoded(encoder.key).canonical)
  }

  private mutating func append(uri: Span<UInt8>) throws(BatchError) {
    guard let identifier = PersistentIdentifier(uriBytes: uri) else {
      throw error("this is not the URI of an identifier", content: uri)
    }
    try append(identifier)
  }

  private mutating func append(json: Span<UInt8>) throws(BatchError) {
    let identifier: PersistentIdentifier
    do {
      identifier = try JSONDecoder().decode(
        PersistentIdentifier.self,
        from: Data([UInt8](copying: json))
      )
    } catch {
      throw self.error("this is not the JSON of an identifier", content: json)
    }
    try append(identifier)
  }

  private mutating func append(_ identifier: PersistentIdentifier) throws(BatchError) {
    guard let key = identifier.key else {
      throw error("the identifier \(identifier) has no key that a row could have")
    }
    if let space {
      guard space == identifier.space else {
        throw error(
          "the identifier \(identifier) belongs to another store or entity than "
            + "\(space.entityName) in \(space.storeIdentifier ?? "no store")"
        )
      }
    } else {
      space = identifier.space
    }
    try append(key)
  }

  private mutating func append(_ key: PrimaryKey) throws(BatchError) {
    guard let space else { throw entityMissing() }
    let kind: IdentifierList.KeyKind =
      if case .integer = key { .integer } else { .encoded }
    if builder == nil {
      builder = IdentifierListBuilder(
        storeIdentifier: space.storeIdentifier ?? "",
        entityName: space.entityName,
        keyKind: keyKind ?? kind
      )
    }
    if kind == .encoded, builder?.keyKind == .integer {
      guard keyKind == nil else { throw error("the key \(key) is not an integer") }
      try encodeKeys()
    }
    builder?.append(key)
  }

  /// Continues with keys of any kind: a column without a type may contain integers and other
  /// values.
  private mutating func encodeKeys() throws(BatchError) {
    guard let space, let built = builder.take() else { return }
    let integers = built.finish()
    builder = IdentifierListBuilder(
      storeIdentifier: space.storeIdentifier ?? "",
      entityName: space.entityName,
      keyKind: .encoded
    )
    for position in integers.indices { builder?.append(try integers.key(at: position)) }
  }

  private func entityMissing() -> BatchError {
    BatchError(
      .invalidIdentifier,
      "the text does not name the entity of its keys",
      at: name,
      remedy: "name the store and the entity, or give URIs"
    )
  }

  private func error(
    _ message: String,
    content: Span<UInt8> = Span()
  ) -> BatchError {
    // As much as fits on a line, without control characters.
    let shown = [UInt8](copying: content.extracting(first: 80)).map {
      $0 < 0x20 || $0 == 0x7F ? UInt8(ascii: "?") : $0
    }
    let excerpt = shown.isEmpty ? "" : ": \(String(decoding: shown, as: UTF8.self))"
    return BatchError(
      .invalidIdentifier,
      message + excerpt,
      at: "\(name):\(lineCount)",
      remedy:
        "give one identifier a line: a number (28), a text after = (=EU, =New%20York), several columns"
        + " with commas between (=EU,28), an x-coredata:// URI, or JSON"
    )
  }
}
