import BatchIdentifiers
import BatchPipeline
import Testing

@Suite struct ParameterValuesTests {
  private static let start = "2026-11-21T10:00:00Z"
  private static let run = "7B1C"

  private func bind(
    _ arguments: [String],
    _ declarations: [String: ParameterDeclaration]
  ) throws(BatchError) -> ParameterValues {
    try ParameterValues(
      arguments: arguments,
      declarations: declarations,
      runStartedAt: Self.start,
      runID: Self.run
    )
  }

  private func message(
    _ arguments: [String],
    _ declarations: [String: ParameterDeclaration]
  ) -> String {
    do throws(BatchError) {
      return "bound: \(try bind(arguments, declarations))"
    } catch {
      return error.description
    }
  }

  private static let good: [(ParameterType, String, ParameterValue)] = [
    (.integer, "-9223372036854775808", .integer(.min)),
    (.integer, "+5", .integer(5)),
    (.real, "1", .real(1)),
    (.real, "-2.5e3", .real(-2500)),
    (.text, "", .text("")),
    (.text, "a=b=c", .text("a=b=c")),
    (.text, "$runID", .text("$runID")),
    (.boolean, "true", .integer(1)),
    (.boolean, "1", .integer(1)),
    (.boolean, "false", .integer(0)),
    (.boolean, "0", .integer(0)),
    (.date, "2020-02-29", .text("2020-02-29")),
    (.date, "0000-01-01", .text("0000-01-01")),
    (.timestamp, "2020-01-02", .text("2020-01-02T00:00:00Z")),
    (.timestamp, "2020-01-02T03:04", .text("2020-01-02T03:04:00Z")),
    (.timestamp, "2020-01-02 03:04:05", .text("2020-01-02T03:04:05Z")),
    (.timestamp, "2020-01-02T03:04:05.1200Z", .text("2020-01-02T03:04:05.12Z")),
    (.timestamp, "2020-01-01T00:30:00+01:00", .text("2019-12-31T23:30:00Z")),
    (.timestamp, "2020-02-28T23:30:00-0100", .text("2020-02-29T00:30:00Z")),
    (.timestamp, "2000-02-29T12:00:00+05", .text("2000-02-29T07:00:00Z")),
    (.timestamp, "0000-03-01T00:00:00Z", .text("0000-03-01T00:00:00Z")),
    (.timestamp, "9999-12-31T23:59:59Z", .text("9999-12-31T23:59:59Z")),
  ]

  @Test(arguments: good)
  func `a parameter's text becomes a value of the declared type`(
    type: ParameterType,
    text: String,
    expected: ParameterValue
  ) throws {
    let values = try bind(["p=\(text)"], ["p": .init(type)])
    #expect(values["p"] == expected)
    #expect(values.entries["p"]?.origin == .given)
  }

  private static let bad: [(ParameterType, String, String)] = [
    (.integer, "", "\"\" is not an integer;"),
    (.integer, "1.0", "\"1.0\" is not an integer;"),
    (.integer, "-", "\"-\" is not an integer;"),
    (.integer, "9223372036854775808", "is not an integer: it does not fit into 64 bits;"),
    (.real, "nan", "\"nan\" is not a number;"),
    (.real, "0x10", "\"0x10\" is not a number;"),
    (.real, "1e999", "\"1e999\" is not a number: it is too large;"),
    (.boolean, "yes", "\"yes\" is not a boolean; expected true or false"),
    (.date, "2020-13-45", "is not a date: there is no month 13; expected YYYY-MM-DD"),
    (.date, "2021-02-29", "is not a date: 2021-02 has 28 days; expected YYYY-MM-DD"),
    (.date, "1900-02-29", "is not a date: 1900-02 has 28 days; expected YYYY-MM-DD"),
    (.date, "2020-1-1", "\"2020-1-1\" is not a date; expected YYYY-MM-DD"),
    (.date, "2020-01-01T00:00:00Z", "is not a date; expected YYYY-MM-DD"),
    (.timestamp, "2020-01-01T24:00:00Z", "is not a timestamp: there is no hour 24;"),
    (.timestamp, "2020-01-01T23:60:00Z", "is not a timestamp: there is no minute 60;"),
    (.timestamp, "2020-01-01T23:59:60Z", "is not a timestamp: there is no second 60;"),
    (.timestamp, "2020-01-01T1:00", "is not a timestamp: the time is not HH:MM:SS;"),
    (.timestamp, "2020-01-01T", "is not a timestamp: the time is not HH:MM:SS;"),
    (.timestamp, "2020-01-01T10:00:00.", "the fraction of the second is not of one to nine digits"),
    (.timestamp, "2020-01-01T10:00:00+1", "is not a timestamp: the zone is not Z or +HH:MM;"),
    (.timestamp, "2020-01-01T10:00:00Zx", "is not a timestamp: the zone is not Z or +HH:MM;"),
    (.timestamp, "9999-12-31T23:30:00-01:00", "in UTC it is outside of the years 0000 to 9999;"),
  ]

  @Test(arguments: bad)
  func `the error of a malformed parameter names the problem and the expected form`(
    type: ParameterType,
    text: String,
    expected: String
  ) {
    let message = message(["p=\(text)"], ["p": .init(type)])
    #expect(message.hasPrefix("parameter \"p\": "))
    #expect(message.contains(expected), "\(message)")
  }

  @Test func `a date shifted by any number of days agrees with the calendar`() throws {
    var day = (year: 1999, month: 12, day: 30)
    for _ in 0..<1500 {
      let lengths = [31, 0, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
      let isLeap = day.year % 4 == 0 && (day.year % 100 != 0 || day.year % 400 == 0)
      let length = day.month == 2 ? (isLeap ? 29 : 28) : lengths[day.month - 1]
      let today = text(day)
      day.day += 1
      if day.day > length { day = (day.year, day.month + 1, 1) }
      if day.month > 12 { day = (day.year + 1, 1, 1) }
      let values = try bind(
        ["p=\(today)T22:00:00-03:00", "q=\(text(day))T01:00:00+02:30"],
        ["p": .init(.timestamp), "q": .init(.timestamp)]
      )
      #expect(values["p"] == .text("\(text(day))T01:00:00Z"))
      #expect(values["q"] == .text("\(today)T22:30:00Z"))
    }
  }

  private func text(_ day: (year: Int, month: Int, day: Int)) -> String {
    "\(day.year)-\(day.month < 10 ? "0" : "")\(day.month)-\(day.day < 10 ? "0" : "")\(day.day)"
  }

  @Test func `an omitted parameter gets its default`() throws {
    let values = try bind(
      [],
      [
        "fixed": .init(.integer, default: .value(.integer(3))),
        "whole": .init(.real, default: .value(.integer(3))),
        "absent": .init(.text, required: false),
        "null": .init(.text, default: .value(.null)),
        "now": .init(.timestamp, default: .runStartedAt),
        "today": .init(.date, default: .runStartedAt),
        "run": .init(.text, default: .runID),
        "late": .init(.timestamp, default: .value(.text("2020-01-01T01:00:00+01:00"))),
      ]
    )
    #expect(values["fixed"] == .integer(3))
    #expect(values["whole"] == .real(3))
    #expect(values["absent"] == .null)
    #expect(values["null"] == .null)
    #expect(values["now"] == .text(Self.start))
    #expect(values["today"] == .text("2026-11-21"))
    #expect(values["run"] == .text(Self.run))
    #expect(values["late"] == .text("2020-01-01T00:00:00Z"))
    #expect(values["unknown"] == nil)
    #expect(values.entries["now"]?.origin == .runStartedAt)
    #expect(values.entries["run"]?.origin == .runID)
    #expect(values.entries["fixed"]?.origin == .declared)
  }

  @Test func `all problems of the parameters are reported together`() {
    let declarations: [String: ParameterDeclaration] = [
      "before": .init(.date), "limit": .init(.integer), "name": .init(.text),
    ]
    #expect(
      message(["befor=2020-01-01", "limit=x", "name=a", "name=b", "nothing", "=5"], declarations)
        == """
        parameter "name": is given twice; give it once
        parameter 5 of the command line has no name or no value; give it as --param name=value
        parameter 6 of the command line has no name or no value; give it as --param name=value
        parameter "befor": the job declares no such parameter; did you mean "before"?
        parameter "before": is missing; give YYYY-MM-DD with --param before=…
        parameter "limit": "x" is not an integer; \
        expected a whole number from -9223372036854775808 to 9223372036854775807
        """
    )
    #expect(
      message(["a=1"], [:])
        == #"parameter "a": the job declares no such parameter; "#
        + "there are no parameters of the job"
    )
  }

  @Test func `a secret parameter is never shown`() throws {
    let secret = "hunter2"
    let text = ParameterDeclaration(.text, secret: true)
    let values = try bind(["token=\(secret)", "plain=x"], ["token": text, "plain": .init(.text)])
    #expect(values["token"] == .text(secret))
    #expect("\(values)" == #"plain="x", token=(secret)"#)
    #expect(!String(reflecting: values).contains(secret))
    for type in [ParameterType.integer, .date, .timestamp, .real, .boolean] {
      let message = message(["token=2020-13-\(secret)"], ["token": .init(type, secret: true)])
      #expect(message.contains("the value is not"))
      #expect(!message.contains(secret) && !message.contains("13"))
    }
    #expect(!message([secret], ["token": text]).contains(secret))
  }

  @Test func `a program passes parameters as typed values`() throws {
    let declarations: [String: ParameterDeclaration] = [
      "a": .init(.real), "b": .init(.boolean), "c": .init(.date), "d": .init(.text),
    ]
    let given: [String: ParameterValue] = [
      "a": .integer(2), "b": .integer(1), "c": .text("2020-01-01"), "d": .null,
    ]
    let values = try ParameterValues(
      given,
      declarations: declarations,
      runStartedAt: Self.start,
      runID: Self.run
    )
    #expect(values["a"] == .real(2))
    #expect(values["d"] == .null)
    #expect(values.names == ["a", "b", "c", "d"])
    let error = #expect(throws: BatchError.self) {
      try ParameterValues(
        ["b": .integer(2), "e": .null],
        declarations: ["b": .init(.boolean)],
        runStartedAt: Self.start,
        runID: Self.run
      )
    }
    #expect(error?.code == .invalidParameter)
    #expect(
      error?.description == """
        parameter "e": the job declares no such parameter; the parameters of the job are b
        parameter "b": 2 is not a boolean; expected true or false
        """
    )
  }
}
