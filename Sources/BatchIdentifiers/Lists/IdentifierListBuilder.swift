/// Builds a list from keys that arrive one by one.
///
/// It needs little more memory than the finished list: keys are packed as soon as they fill a
/// segment.
///
///     var builder = IdentifierListBuilder(storeIdentifier: store, entityName: "orders")
///     for key in 1...1_000_000 { builder.append(Int64(key)) }
///     let list = builder.finish()   // a few dozen bytes
public struct IdentifierListBuilder: ~Copyable, Sendable {
  private let header: IdentifierList.Header
  private var integers: IntegerSegmentWriter
  private var encoded: EncodedSegmentWriter
  private var encoder = EncodedKey.Encoder()

  /// The kind of the keys.
  public var keyKind: IdentifierList.KeyKind { header.keyKind }

  /// The number of keys added so far.
  public private(set) var count = 0

  /// Makes a builder of an empty list.
  public init(
    storeIdentifier: String,
    entityName: String,
    keyKind: IdentifierList.KeyKind = .integer
  ) {
    self.init(
      storeIdentifier: storeIdentifier,
      entityName: entityName,
      keyKind: keyKind,
      spill: nil
    )
  }

  /// `spill` determines where the blocks are kept; nil to keep all of them in memory.
  package init(
    storeIdentifier: String,
    entityName: String,
    keyKind: IdentifierList.KeyKind,
    spill: BlockSpill?
  ) {
    header = IdentifierList.Header(
      storeIdentifier: storeIdentifier,
      entityName: entityName,
      keyKind: keyKind
    )
    integers = IntegerSegmentWriter(spill: spill)
    encoded = EncodedSegmentWriter(spill: spill)
  }

  /// Adds the key of a row.
  ///
  /// An integer in a list of encoded keys becomes a key of one component.
  ///
  /// - Precondition: If the key is encoded, the list has encoded keys.
  public mutating func append(_ key: PrimaryKey) {
    switch key {
    case .integer(let value): append(value)
    case .encoded(let key): append(encoded: key.bytes.span)
    }
  }

  /// Adds an integer key.
  ///
  /// - Complexity: O(1), amortized.
  public mutating func append(_ key: Int64) {
    guard header.keyKind == .integer else {
      encoder.removeAll()
      encoder.append(key)
      encoded.append(encoder.bytes)
      count += 1
      return
    }
    integers.append(key)
    count += 1
  }

  /// Adds integer keys.
  ///
  /// - Complexity: O(n)
  public mutating func append(contentsOf keys: UnsafeBufferPointer<Int64>) {
    // The caller keeps the buffer valid until this returns.
    append(contentsOf: unsafe keys.span)
  }

  /// Adds integer keys at equal distances, many of them as one.
  mutating func append(_ stretch: IntegerStretch) {
    precondition(header.keyKind == .integer, "a stretch of integers in a list of encoded keys")
    integers.append(stretch)
    count += stretch.count
  }

  /// Adds integer keys.
  ///
  /// - Complexity: O(n)
  public mutating func append(contentsOf keys: Span<Int64>) {
    guard header.keyKind == .integer else {
      for index in keys.indices { append(keys[index]) }
      return
    }
    integers.append(contentsOf: keys)
    count += keys.count
  }

  /// Adds integer keys.
  ///
  /// - Complexity: O(n)
  public mutating func append(contentsOf keys: [Int64]) {
    append(contentsOf: keys.span)
  }

  /// Adds a key in the form of an ``EncodedKey``.
  ///
  /// - Complexity: O(n) in the bytes of the key, amortized.
  /// - Precondition: The list has encoded keys, and the bytes come from an ``EncodedKey/Encoder``,
  ///   at most ``EncodedKey/maximumByteCount`` of them.
  public mutating func append(encoded key: Span<UInt8>) {
    precondition(header.keyKind == .encoded, "an encoded key in a list of integers")
    precondition(
      !key.isEmpty && key.count <= EncodedKey.maximumByteCount,
      "a key of no bytes or too many"
    )
    encoded.append(key)
    count += 1
  }

  /// Adds a key in the form of an ``EncodedKey``.
  ///
  /// - Complexity: O(n) in the bytes of the key, amortized.
  /// - Precondition: As for the key in a span.
  public mutating func append(encoded key: UnsafeRawBufferPointer) {
    unsafe withSpan(of: key) { append(encoded: $0) }
  }

  /// Adds the numbers from 1 to `count`, as one.
  package mutating func append(numbersTo count: Int) {
    if let stretch = IntegerStretch(first: 1, step: 1, count: count) { append(stretch) }
  }

  /// Returns the list of all added keys, in order.
  public consuming func finish() -> IdentifierList { IdentifierList(inMemory: finishPacked()) }

  /// Returns all added keys in order, in memory or in a file.
  package consuming func finishPacked() -> PackedIdentifiers {
    switch header.keyKind {
    case .integer:
      integers.finish()
      return packed(by: integers.writer, isSorted: integers.isSorted)
    case .encoded:
      encoded.finish()
      return packed(by: encoded.writer, isSorted: encoded.isSorted)
    }
  }

  private func packed(by writer: BlockWriter, isSorted: Bool) -> PackedIdentifiers {
    PackedIdentifiers(
      header: header,
      isSorted: isSorted,
      directory: writer.directory,
      source: writer.source
    )
  }
}
