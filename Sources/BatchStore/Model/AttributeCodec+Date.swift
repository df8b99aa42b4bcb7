#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension AttributeCodec where Value == Date {
  /// A TEXT such as `2026-11-21T15:05:00Z`; read with or without parts of seconds and with any zone,
  /// written in UTC, with milliseconds where there are any.
  public static var iso8601: AttributeCodec<Date> {
    AttributeCodec(
      typeName: "ISO 8601 date",
      placeholder: Date(timeIntervalSinceReferenceDate: 0),
      decode: { $0.string.flatMap(date) },
      encode: { date in
        let seconds = date.timeIntervalSinceReferenceDate
        let hasParts = seconds != seconds.rounded()
        return .text(date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: hasParts)))
      }
    )
  }

  /// A REAL or an INTEGER of seconds since 1970.
  public static var unixSeconds: AttributeCodec<Date> {
    AttributeCodec(
      typeName: "date in Unix seconds",
      form: .unixSeconds,
      placeholder: Date(timeIntervalSinceReferenceDate: 0),
      decode: { $0.double.map { Date(timeIntervalSince1970: $0) } },
      encode: { .real($0.timeIntervalSince1970) }
    )
  }

  /// A REAL or an INTEGER of seconds since 2001, as Core Data keeps dates.
  public static var referenceSeconds: AttributeCodec<Date> {
    AttributeCodec(
      typeName: "date in seconds since 2001",
      form: .canonical,
      placeholder: Date(timeIntervalSinceReferenceDate: 0),
      decode: { $0.double.map { Date(timeIntervalSinceReferenceDate: $0) } },
      encode: { .real($0.timeIntervalSinceReferenceDate) }
    )
  }

  private static func date(_ text: String) -> Date? {
    (try? Date.ISO8601FormatStyle().parse(text))
      ?? (try? Date.ISO8601FormatStyle(includingFractionalSeconds: true).parse(text))
  }
}
