import BatchRuns
public import BatchPlatform
import BatchSQLite

extension AttributeCodec where Value == Date {
  /// A TEXT such as `2026-11-21 15:05:00` in UTC, as SQLite's `datetime()` and web frameworks write
  /// it.
  ///
  /// It is read with or without fractional seconds, and written to the nearest microsecond if there
  /// are any. A date alone is midnight. A `T` instead of the space and a final `Z` are also
  /// accepted.
  public static var sqlDateTime: AttributeCodec<Date> {
    AttributeCodec(
      typeName: "date and time",
      placeholder: Date(timeIntervalSinceReferenceDate: 0),
      decode: { $0.string.flatMap { SQLDate($0)?.date } },
      encode: { .text(SQLDate($0)?.dateTime ?? "\($0.timeIntervalSinceReferenceDate) s") }
    )
  }

  /// A TEXT such as `2026-11-21`, which is midnight in UTC; a date at another time does not fit.
  public static var sqlDate: AttributeCodec<Date> {
    AttributeCodec(
      typeName: "date",
      placeholder: Date(timeIntervalSinceReferenceDate: 0),
      decode: { $0.string.flatMap { $0.utf8.count == 10 ? SQLDate($0)?.date : nil } },
      encode: { .text(SQLDate($0)?.day ?? "\($0.timeIntervalSinceReferenceDate) s") }
    )
  }
}
