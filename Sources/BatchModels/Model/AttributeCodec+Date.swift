import BatchStore

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension AttributeCodec where Value == Date {
  /// A TEXT such as `2026-11-21T15:05:00Z`; read with or without parts of seconds and with any zone,
  /// written in UTC, to the nearest millisecond where there are parts.
  ///
  /// A date for which there is no such text, as one before `Date.distantPast`, does not fit.
  public static var iso8601: AttributeCodec<Date> {
    AttributeCodec(
      typeName: "ISO 8601 date",
      placeholder: Date(timeIntervalSinceReferenceDate: 0),
      decode: { $0.string.flatMap(date) },
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
    date(text, Date.ISO8601FormatStyle())
      ?? date(text, Date.ISO8601FormatStyle(includingFractionalSeconds: true))
  }

  /// A whole text as a date: `parse(_:)` is content with a prefix of one.
  private static func date(_ text: String, _ style: Date.ISO8601FormatStyle) -> Date? {
    let all = text.startIndex..<text.endIndex
    guard let (end, date) = try? style.consuming(text, startingAt: text.startIndex, in: all),
      end == text.endIndex
    else { return nil }
    return date
  }

  /// The dates that formatting does not silently make others of.
  private static let formatted = Date.distantPast...Date(timeIntervalSince1970: 1e12)

  private static func text(_ date: Date) -> String {
    // This is no date to whoever reads it, so that it is refused.
    guard formatted.contains(date) else { return "\(date.timeIntervalSinceReferenceDate) s" }
    let milliseconds = (date.timeIntervalSinceReferenceDate * 1000).rounded()
    let hasParts = milliseconds.truncatingRemainder(dividingBy: 1000) != 0
    // Formatting cuts off what is less than a millisecond, and most of them are no `Double`: half of
    // one more keeps a date that is read and written from going back each time.
    let seconds = (milliseconds + (hasParts ? 0.5 : 0)) / 1000
    return Date(timeIntervalSinceReferenceDate: seconds)
      .formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: hasParts))
  }
}
