import BatchPlatform

/// The value of a property if none can be read, made from its type alone.
enum Placeholder {
  static func firstCase<Value>(of type: Value.Type) -> Value? {
    func first<Cases: CaseIterable>(_ type: Cases.Type) -> Any? { type.allCases.first }
    return (type as? any CaseIterable.Type).flatMap { first($0) } as? Value
  }

  /// Decodes a value from zeros, empty texts, nil and first cases; throws if the type accepts none
  /// of these.
  static func value<Value: Decodable>(of type: Value.Type) throws -> Value {
    if let value = known(type) { return value }
    return try Value(from: EmptyDecoder(depth: 0))
  }

  /// The values of types that decode only from texts in a specific form.
  fileprivate static func known<Value>(_ type: Value.Type) -> Value? {
    func codec<Kept: AttributeValue>(_ type: Kept.Type) -> Any { type.codec.placeholder() }
    if let type = type as? any AttributeValue.Type { return codec(type) as? Value }
    func zero<Number: Numeric>(_ type: Number.Type) -> Any { type.zero }
    if let type = type as? any Numeric.Type { return zero(type) as? Value }
    if type == Date.self { return Date(timeIntervalSinceReferenceDate: 0) as? Value }
    return firstCase(of: type)
  }
}

/// Decodes as if from nothing: no keys, no elements, zeros and empty texts.
private struct EmptyDecoder: Decoder {
  /// The depth of nesting; a type that contains itself would never end.
  let depth: Int
  var codingPath: [any CodingKey] { [] }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
    KeyedDecodingContainer(EmptyKeyedContainer(decoder: self))
  }
  func unkeyedContainer() -> any UnkeyedDecodingContainer { EmptyUnkeyedContainer(decoder: self) }
  func singleValueContainer() -> any SingleValueDecodingContainer { EmptyValue(decoder: self) }

  func value<Value: Decodable>(_ type: Value.Type) throws -> Value {
    if let value = Placeholder.known(type) { return value }
    guard depth < 32 else { throw none }
    return try Value(from: EmptyDecoder(depth: depth + 1))
  }

  var none: DecodingError {
    .dataCorrupted(DecodingError.Context(codingPath: [], debugDescription: "there is no value"))
  }
}

private struct EmptyKeyedContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let decoder: EmptyDecoder
  var codingPath: [any CodingKey] { [] }
  var allKeys: [Key] { [] }

  func contains(_ key: Key) -> Bool { true }
  func decodeNil(forKey key: Key) -> Bool { true }
  func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
    try decoder.value(type)
  }
  func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) -> Value? { nil }
  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type,
    forKey key: Key
  ) -> KeyedDecodingContainer<Nested> { decoder.container(keyedBy: type) }
  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedDecodingContainer {
    decoder.unkeyedContainer()
  }
  func superDecoder() -> any Decoder { decoder }
  func superDecoder(forKey key: Key) -> any Decoder { decoder }
}

private struct EmptyUnkeyedContainer: UnkeyedDecodingContainer {
  let decoder: EmptyDecoder
  var codingPath: [any CodingKey] { [] }
  var count: Int? { 0 }
  var isAtEnd: Bool { true }
  var currentIndex: Int { 0 }

  func decodeNil() -> Bool { true }
  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { throw decoder.none }
  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type
  ) -> KeyedDecodingContainer<Nested> { decoder.container(keyedBy: type) }
  func nestedUnkeyedContainer() -> any UnkeyedDecodingContainer { self }
  func superDecoder() -> any Decoder { decoder }
}

private struct EmptyValue: SingleValueDecodingContainer {
  let decoder: EmptyDecoder
  var codingPath: [any CodingKey] { [] }

  func decodeNil() -> Bool { true }
  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try decoder.value(type) }
}
