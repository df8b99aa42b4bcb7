import BatchIdentifiers
import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// The forms in which columns have times, against SQLite's own functions and comparisons.
@Suite struct CursorFormTests {
  /// How SQLite writes a number of seconds since 1970, `?`, in a form.
  private static let forms = [
    "date(?, 'unixepoch')",
    "datetime(?, 'unixepoch')",
    "strftime('%Y-%m-%dT%H:%M:%S', ?, 'unixepoch')",
    "strftime('%Y-%m-%dT%H:%M:%SZ', ?, 'unixepoch')",
    "strftime('%Y-%m-%d %H:%M:%f', ?, 'unixepoch')",
    "strftime('%Y-%m-%dT%H:%M:%f+00:00', ?, 'unixepoch')",
    "strftime('%Y-%m-%d %H:%M', ?, 'unixepoch')",
    "CAST(? AS INTEGER)", "?", "CAST(? * 1000 AS INTEGER)", "CAST(? * 1000000 AS INTEGER)",
    "CAST(? * 1000 AS INTEGER) * 1000000",
  ]

  @Test(arguments: forms)
  func `a moment comes after exactly the values of earlier units`(form: String) throws {
    let seed = UInt64.random(in: 0...UInt64(UInt32.max))
    var generator = SeededGenerator(seed: seed)
    let connection = try Connection(path: "file::memory:", options: .init(isURI: true))
    func value(_ seconds: Double) throws -> KeyComponent {
      KeyComponent(try #require(try connection.value("SELECT \(form)", .real(seconds))))
    }
    for _ in 0..<300 {
      // In quarters of a second, which all forms with fractions hold exactly.
      let middle = Double(Int.random(in: 400_000_000...16_000_000_000, using: &generator)) / 4
      let span = [8, 400, 400_000].randomElement(using: &generator) ?? 0
      let now = middle + Double(Int.random(in: -span...span, using: &generator)) / 4
      let written = try value(middle)
      let bound = try value(now)
      let found = try #require(CursorForm(written, isCoreData: false))
      let moment = found.value(at: Int64(now * 1_000_000))
      // Nothing that is written from now on comes before the moment, and all of earlier units does.
      #expect(EncodedKey([moment]) <= EncodedKey([bound]), "seed \(seed): \(moment) \(bound)")
      if middle >= now { #expect(EncodedKey([moment]) <= EncodedKey([written]), "seed \(seed)") }
      if EncodedKey([written]) < EncodedKey([moment]) { #expect(middle < now, "seed \(seed)") }
      let unit = form.hasPrefix("date(") ? 86_400.0 : form.contains("%M'") ? 60 : 1
      if middle < now - unit {
        #expect(EncodedKey([written]) < EncodedKey([moment]), "seed \(seed)")
      }
      if let condition = found.condition(on: "c") {
        let sql = "SELECT \(condition) FROM (SELECT ? AS c)"
        #expect(try connection.value(sql, SQLValue(written)) == .integer(1), "\(condition)")
        for other in ["2026-1-1", "", "2026-01-01 10:00:00+02:00", "yesterday"] {
          #expect(try connection.value(sql, .text(other)) == .integer(0), "\(other)")
        }
      }
    }
  }

  @Test func `what is no time has no form`() {
    let texts = [
      "", "yesterday", "2026-1-1", "2026-01-01 10:00:00+02:00", "2026-01-01  10:00:00",
      "29.11.2026",
      "2026-01-01T", "١٢٣٤-٠١-٠١",
    ]
    let values = texts.map { KeyComponent.text($0) } + [.null, .blob([1]), .invalidText([0xff])]
    for value in values { #expect(CursorForm(value, isCoreData: false) == nil, "\(value)") }
  }

  @Test func `numbers of a Core Data store are seconds since 2001`() throws {
    let form = try #require(CursorForm(.real(817_000_000.5), isCoreData: true))
    #expect(form.value(at: 978_307_200_000_000 + 5_000_000) == .integer(5))
    #expect(CursorForm(.integer(5), isCoreData: true) == form)
  }
}
