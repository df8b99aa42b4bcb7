import BatchRuns
import BatchPlatform
import BatchSQLite

extension AttributeCodec where Value: RawRepresentable & Sendable, Value.RawValue: AttributeValue {
  /// The raw value of an enumeration; a raw value without a case does not fit.
  ///
  /// An index on the column finds cases. If `init(rawValue:)` accepts values that are not the
  /// `rawValue` of a case, for instance by ignoring case, each row is checked instead.
  public static func raw(
    placeholder: @autoclosure @escaping @Sendable () -> Value
  ) -> AttributeCodec {
    let raw = Value.RawValue.codec
    return AttributeCodec(
      typeName: "\(Value.self)",
      form: .other,
      storedForms: { storedForms(of: $0) },
      sample: raw.sample,
      placeholder: placeholder(),
      decode: { raw.decode($0).flatMap { Value(rawValue: $0) } },
      encode: { raw.encode($0.rawValue) }
    )
  }

  /// The stored values of an enumeration's case; nil unless each case has exactly one raw value.
  private static func storedForms(of value: Value) -> [SQLValue]? {
    // Structures usually define `==` themselves.
    guard Mirror(reflecting: value).displayStyle == .enum else { return nil }
    let raw = Value.RawValue.codec
    let stored = raw.encode(value.rawValue)
    guard isExact(near: stored) else { return nil }
    return raw.form == .canonical ? [stored] : raw.storedForms(value.rawValue)
  }

  /// Whether `init(rawValue:)` returns values with the same raw value, as far as trials show.
  private static func isExact(near stored: SQLValue) -> Bool {
    let raw = Value.RawValue.codec
    var trials: [SQLValue] = [stored]
    switch stored {
    case .text(let text):
      let texts = [
        "", " ", "?", "\u{1}", text.uppercased(), text.lowercased(), "\(text) ", " \(text)",
      ]
      trials += texts.map { .text($0) }
    case .integer(let value):
      trials += [.min, .max, -1, 0, value &+ 1, value &- 1, value &+ 1_000].map { .integer($0) }
    default: return false
    }
    return trials.allSatisfy { trial in
      guard let value = raw.decode(trial).flatMap({ Value(rawValue: $0) }) else { return true }
      return raw.encode(value.rawValue) == trial
    }
  }
}

extension AttributeCodec where Value: Codable & Sendable {
  /// A TEXT of JSON.
  ///
  /// A value that cannot be encoded, such as one with an infinite number, does not fit.
  public static func json(
    placeholder: @autoclosure @escaping @Sendable () -> Value
  ) -> AttributeCodec {
    AttributeCodec(
      typeName: "\(Value.self) in JSON",
      form: .other,
      sample: { .text("") },
      placeholder: placeholder(),
      decode: { value in
        value.string.flatMap { try? JSONDecoder().decode(Value.self, from: Data($0.utf8)) }
      },
      encode: { value in
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        // An empty text is not JSON, so it is refused, whereas NULL would be read as nil.
        guard let data = try? encoder.encode(value) else { return .text("") }
        return .text(String(decoding: data, as: UTF8.self))
      }
    )
  }
}
