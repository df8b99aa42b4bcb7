import BatchIdentifiers
import BatchRuns
import Testing

@Suite struct DurationTextTests {
  @Test(arguments: [
    ("50ms", Duration.milliseconds(50)), ("5s", .seconds(5)), ("10m", .seconds(600)),
    ("6h", .seconds(21_600)), ("2d", .seconds(172_800)), ("1.5s", .milliseconds(1500)),
    ("0s", .zero), ("0.25ms", .microseconds(250)), ("3h55m", .seconds(14_100)),
    ("1d12h", .seconds(129_600)), ("1m30.5s", .milliseconds(90_500)),
    ("1s5ms", .milliseconds(1005)),
  ])
  func `a duration text consists of a number and a unit`(text: String, expected: Duration) throws {
    #expect(try Duration(parsing: text) == expected)
  }

  @Test(arguments: [
    ("", #""" is not a duration: it is empty"#),
    ("5", #""5" is not a duration: the unit is missing"#),
    ("-5s", #""-5s" is not a duration: it is negative"#),
    ("s", #""s" is not a duration: it begins with no number"#),
    ("1.s", #""1.s" is not a duration: the number is malformed"#),
    ("1.2.3s", #""1.2.3s" is not a duration: the number is malformed"#),
    ("5 s", #""5 s" is not a duration"#),
    ("5S", #""5S" is not a duration: unknown unit"#),
    ("٥s", #""٥s" is not a duration: it begins with no number"#),
    ("9999999999999999999s", #""9999999999999999999s" is not a duration: it is too large"#),
    ("999999999999d", #""999999999999d" is not a duration: it is too large"#),
    ("3h1d", #""3h1d" is not a duration: its units are mixed up"#),
    ("1h1h", #""1h1h" is not a duration: its units are mixed up"#),
    ("1.5h30m", #""1.5h30m" is not a duration: its units are mixed up"#),
    ("3h55", #""3h55" is not a duration: the unit is missing"#),
    ("3hh", #""3hh" is not a duration: unknown unit"#),
    ("1d106751d", #""1d106751d" is not a duration: its units are mixed up"#),
    ("106751d24h", #""106751d24h" is not a duration: it is too large"#),
    ("1.1234567s", #""1.1234567s" is not a duration: more than six decimals"#),
  ])
  func `the error of a malformed duration says what is wrong`(text: String, expected: String) {
    let error = #expect(throws: BatchError.self) { try Duration(parsing: text) }
    #expect(error?.message == expected)
    #expect(error?.remedy != nil)
  }

  @Test(
    arguments: [
      ("512B", 512), ("64MB", 64_000_000), ("1GiB", 1 << 30), ("1.5kB", 1500), ("2KB", 2000),
      ("0.5KiB", 512),
    ] as [(String, Int64)]
  )
  func `a size text consists of a number and a unit`(text: String, expected: Int64) throws {
    #expect(try ByteSize(parsing: text).bytes == expected)
  }

  @Test(
    arguments: [
      (0, "0 bytes"), (999, "999 bytes"), (1000, "1 kB"), (4_200_000, "4.2 MB"),
      (64_000_000, "64 MB"), (8_000_000_000_000_000, "8000 TB"), (-5, "-5 bytes"),
    ] as [(Int64, String)]
  )
  func `a size is shown in the unit that fits best`(bytes: Int64, expected: String) {
    #expect(ByteSize(bytes: bytes).description == expected)
  }

  @Test func `the error of an unknown unit lists the known units`() {
    let error = #expect(throws: BatchError.self) { try ByteSize(parsing: "64mb") }
    #expect(
      error?.description
        == #""64mb" is not a size: unknown unit; "#
        + "the units are B, kB, KB, MB, GB, TB, KiB, MiB, GiB, TiB"
    )
  }
}
