#if PostgreSQL
import BatchEngine
import BatchIdentifiers
import BatchTestSupport
import Foundation
import Testing

@testable import BatchPostgres

@Suite struct PostgresExportTests {
  private static let table = """
    CREATE TYPE mood AS ENUM ('sad', 'it''s "ok"');
    CREATE TABLE t (id bigint PRIMARY KEY, b boolean, l bigint, r real, d float8, x numeric, c char(5), w text,
      j jsonb, a text[], z timestamptz, y bytea, m mood);
    INSERT INTO t VALUES
      (1, true, 9223372036854775807, 0.1, 0.1, 12345678901234567890.10, 'ab', 'it''s, "x"', '{"b": 1.10}',
        '{x,NULL,""}', '2024-03-31 01:30+01', '\\x00ff10', 'sad'),
      (2, false, -9223372036854775808, 1e30, 'Infinity', 'NaN', '', '', '[]', '{}', 'infinity', '', 'it''s "ok"'),
      (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
      (4, true, 0, 'NaN', '-Infinity', 5, 'Ä', E'a\\nb', 'null', '{{1,2},{3,4}}', '0044-03-15 12:00:00+00 BC', 'x', 'sad')
    """

  private static func text(_ trial: ChangeTrial, _ export: PostgresExport) throws -> String {
    let lines = try export.lines(for: trial.keys(), in: trial.session)
    return String(decoding: export.header + lines.bytes, as: UTF8.self)
  }

  @Test func `lines of NDJSON have all digits, and text for values that are not numbers`()
    async throws
  {
    let trial = try await ChangeTrial(Self.table)
    let text = try Self.text(trial, trial.export(as: .ndjson))
    #expect(
      text == #"""
        {"id":1,"b":true,"l":9223372036854775807,"r":0.1,"d":0.1,"x":12345678901234567890.10,"c":"ab   ","w":"it's, \"x\"","j":"{\"b\": 1.10}","a":"{x,NULL,\"\"}","z":"2024-03-31 00:30:00+00","y":{"$base64":true,"encoded":"AP8Q"},"m":"sad"}
        {"id":2,"b":false,"l":-9223372036854775808,"r":1e+30,"d":1e999,"x":"NaN","c":"     ","w":"","j":"[]","a":"{}","z":"infinity","y":{"$base64":true,"encoded":""},"m":"it's \"ok\""}
        {"id":3,"b":null,"l":null,"r":null,"d":null,"x":null,"c":null,"w":null,"j":null,"a":null,"z":null,"y":null,"m":null}
        {"id":4,"b":true,"l":0,"r":"NaN","d":-1e999,"x":5,"c":"Ä    ","w":"a\nb","j":"null","a":"{{1,2},{3,4}}","z":"0044-03-15 12:00:00+00 BC","y":{"$base64":true,"encoded":"eA=="},"m":"sad"}

        """#
    )
    for line in text.split(separator: "\n") where !line.contains("1e999") {
      #expect(throws: Never.self) { try JSONSerialization.jsonObject(with: Data(line.utf8)) }
    }
  }

  @Test func `lines of CSV are those that an export from SQLite has`() async throws {
    let trial = try await ChangeTrial(Self.table)
    let text = try Self.text(trial, trial.export(as: .csv))
    let lines = [
      "id,b,l,r,d,x,c,w,j,a,z,y,m",
      #"1,true,9223372036854775807,0.1,0.1,12345678901234567890.10,"ab   ","it's, ""x""","{""b"": 1.10}","{x,NULL,""""}",2024-03-31 00:30:00+00,AP8Q,sad"#,
      #"2,false,-9223372036854775808,1e+30,1e999,NaN,"     ","",[],{},infinity,,"it's ""ok""""#,
      "3,,,,,,,,,,,,",
      "4,true,0,NaN,-1e999,5,\"Ä    \",\"a\nb\",null,\"{{1,2},{3,4}}\",0044-03-15 12:00:00+00 BC,eA==,sad",
    ]
    #expect(text == lines.map { $0 + "\r\n" }.joined())
    // An empty line would not be a row.
    let single = try Self.text(trial, trial.export(["w"], as: .csv))
    #expect(single == "w\r\n\"it's, \"\"x\"\"\"\r\n\"\"\r\n\"\"\r\n\"a\nb\"\r\n")
  }

  @Test(arguments: [
    ("bigint", "g"), ("bigint", "g * 3 - 70"), ("text", "'k' || g"), ("uuid", "md5(g::text)::uuid"),
  ])
  func `the bytes are the same however the list is split, and missing rows are counted`(
    type: String,
    value: String
  ) async throws {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (k \(type) PRIMARY KEY, g int, w text);
      INSERT INTO t SELECT \(value), g, repeat('x', g % 50) FROM generate_series(1, 300) AS g
      """,
      where: "g % 10 <> 7",
      orderBy: [.init("g", descending: true)]
    )
    try trial.session.run(
      "DELETE FROM t WHERE g IN (11, 12, 300); UPDATE t SET w = 'y' WHERE g = 20"
    )
    let export = try trial.export(as: .ndjson, if: "w <> 'y'")
    let whole = try export.lines(for: trial.keys(), in: trial.session)
    #expect(whole.count == 270)
    #expect(whole.written.outcomes.succeeded == 266)
    #expect(whole.written.outcomes.vanished == 3)
    #expect(whole.written.outcomes.noLongerMatching == 1)
    #expect(whole.written.passedOver.vanished.contains(0))
    for (size, held) in [(1, 1 << 20), (7, 1 << 20), (100, 500), (270, 2000)] {
      var bytes: [UInt8] = []
      var outcomes = Outcomes()
      var next = 0
      while next < 270 {
        let keys = try trial.keys(next..<min(next + size, 270))
        let lines = try export.lines(for: keys, holding: held, in: trial.session)
        bytes += lines.bytes
        outcomes += lines.written.outcomes
        #expect(lines.written.outcomes.total == lines.count)
        next += lines.count
      }
      #expect(bytes == whole.bytes, "chunks of \(size), \(held) bytes held")
      #expect(outcomes == whole.written.outcomes)
    }
  }

  @Test func `a row that cannot be read is found, and the others have their lines`() async throws {
    let trial = try await ChangeTrial(
      "CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t SELECT g, g FROM generate_series(1, 50) AS g"
    )
    let export = try trial.export(as: .csv, if: "1 / (n - 30) < 9")
    let lines = try export.lines(for: trial.keys(), onFailure: .skip(upTo: 1), in: trial.session)
    #expect(lines.written.failures.map(\.number) == [29])
    #expect(lines.written.succeeded == 49)
    #expect(lines.count == 50)
    #expect(String(decoding: lines.bytes, as: UTF8.self).split(separator: "\r\n").count == 49)
    let error = #expect(throws: BatchError.self) {
      try export.lines(for: trial.keys(), in: trial.session)
    }
    #expect(error?.message.contains("identifier 30:") == true)
  }
}
#endif
