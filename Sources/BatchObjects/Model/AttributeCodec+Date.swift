import BatchRuns
public import BatchPlatform
import BatchSQLite

extension AttributeCodec where Value == Date {
  /// A TEXT such as `2026-11-21T15:05:00Z`.
  ///
  /// It is read with or without fractional seconds and in any time zone, and written in UTC, with
  /// milliseconds if there are fractional seconds. A date that has no such text, such as one before
  /// `Date.distantPast`, does not fit.
  public static var iso8601: AttributeCodec<Date> {
    AttributeCodec(
      typeName: "ISO 8601 date",
      placeholder: Date(timeIntervalSinceReferenceDate: 0),
      decode: { $0.string.flatMap { Date(iso8601: $0) } },
      encode: { .text(text($0)) }
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

  /// A REAL or an INTEGER of seconds since 2001, as Core Data stores dates.
  public static var referenceSeconds: AttributeCodec<Date> {
    AttributeCodec(
      typeName: "date in seconds since 2001",
      form: .canonical,
      placeholder: Date(timeIntervalSinceReferenceDate: 0),
      decode: { $0.double.map { Date(timeIntervalSinceReferenceDate: $0) } },
      encode: { .real($0.timeIntervalSinceReferenceDate) }
    )
  }

  /// Formatting silently changes dates outside this range.
  private static let formatted = Date.distantPast...Date(timeIntervalSince1970: 1e12)

  private static func text(_ date: Date) -> String {
    // No reader interprets this as a date, so it is refused.
    guard formatted.contains(date) else { return "\(date.timeIntervalSinceReferenceDate) s" }
    let milliseconds = (date.timeIntervalSinceReferenceDate * 1000).rounded()
    let hasParts = milliseconds.truncatingRemainder(dividingBy: 1000) != 0
    // Formatting truncates to milliseconds, and most of these are not exact as a `Double`: adding
    // half a millisecond keeps a date from moving back each time it is read and written.
    let seconds = (milliseconds + (hasParts ? 0.5 : 0)) / 1000
    return Date(timeIntervalSinceReferenceDate: seconds)
      .formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: hasParts))
  }
}
