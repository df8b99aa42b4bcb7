import BatchStore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension AttributeCodec where Value: RawRepresentable & Sendable, Value.RawValue: AttributeValue {
  /// The raw value; one that stands for no case does not fit.
  public static func raw(placeholder: Value) -> AttributeCodec {
    let raw = Value.RawValue.codec
    return AttributeCodec(
      typeName: "\(Value.self)",
      placeholder: placeholder,
      decode: { raw.decode($0).flatMap { Value(rawValue: $0) } },
      encode: { raw.encode($0.rawValue) }
    )
  }
}

extension AttributeCodec where Value: Codable & Sendable {
  /// A TEXT of JSON.
  ///
  /// A value that cannot be encoded, as one with an infinite number, does not fit.
  public static func json(placeholder: Value) -> AttributeCodec {
    AttributeCodec(
      typeName: "\(Value.self) in JSON",
      placeholder: placeholder,
      decode: { value in
        value.string.flatMap { try? JSONDecoder().decode(Value.self, from: Data($0.utf8)) }
      },
      encode: { value in
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        // Nothing is no JSON, so that it is refused, where NULL would pass for nil.
        guard let data = try? encoder.encode(value) else { return .text("") }
        return .text(String(decoding: data, as: UTF8.self))
      }
    )
  }
}
