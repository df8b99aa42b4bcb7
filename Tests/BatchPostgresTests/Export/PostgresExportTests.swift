#if PostgreSQL
import BatchRuns
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

  @Test func `an NDJSON export keeps all digits and writes nonnumeric values as text`() async throws
  {
    let trial = try await ChangeTrial(Self.table)
    let text = try Self.text(trial, trial.export(as: LineFormat(.ndjson)))
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

  @Test func `a CSV export from PostgreSQL equals one from SQLite`() async throws {
    let trial = try await ChangeTrial(Self.table)
    let text = try Self.text(trial, trial.export(as: LineFormat(.csv)))
    let lines = [
      "id,b,l,r,d,x,c,w,j,a,z,y,m",
      #"1,true,9223372036854775807,0.1,0.1,12345678901234567890.10,"ab   ","it's, ""x""","{""b"": 1.10}","{x,NULL,""""}",2024-03-31 00:30:00+00,AP8Q,sad"#,
      #"2,false,-9223372036854775808,1e+30,1e999,NaN,"     ","",[],{},infinity,"","it's ""ok""""#,
      "3,,,,,,,,,,,,",
      "4,true,0,NaN,-1e999,5,\"Ä    \",\"a\nb\",null,\"{{1,2},{3,4}}\",0044-03-15 12:00:00+00 BC,eA==,sad",
    ]
    #expect(text == lines.map { $0 + "\r\n" }.joined())
    // An empty line would not be a row.
    let single = try Self.text(trial, trial.export(["w"], as: LineFormat(.csv)))
    #expect(single == "w\r\n\"it's, \"\"x\"\"\"\r\n\"\"\r\n\"\"\r\n\"a\nb\"\r\n")
  }

  @Test func `CSV has the form of the job, and tells NULL from all values`() async throws {
    let trial = try await ChangeTrial(Self.table)
    func text(_ columns: [String], _ form: CSVForm) throws -> String {
      try Self.text(trial, trial.export(columns, as: .csv(form)))
    }
    #expect(
      try text(["id", "b", "x", "w", "y"], CSVForm(delimiter: ";", null: "NaN", bom: true))
        == "\u{feff}id;b;x;w;y|1;true;12345678901234567890.10;\"it's, \"\"x\"\"\";AP8Q"
        .appending("|2;false;\"NaN\";\"\";\"\"|3;NaN;NaN;NaN;NaN|4;true;5;\"a\nb\";eA==|")
        .replacing("|", with: "\r\n")
    )
    #expect(
      try text(["id", "b", "d", "w"], CSVForm(quote: .all))
        == #""id","b","d","w"|"1","true","0.1","it's, ""x"""|"2","false","1e999",""|"3",,,|"#
        .appending("\"4\",\"true\",\"-1e999\",\"a\nb\"|").replacing("|", with: "\r\n")
    )
    // The server writes the fields of a file with a byte order mark.
    #expect(
      try text(["id", "w"], CSVForm(bom: true))
        == "\u{feff}" + Self.text(trial, trial.export(["id", "w"], as: LineFormat(.csv)))
    )
  }

  @Test func `columns that are JSON have values, and what is no JSON fails its row`() async throws {
    let trial = try await ChangeTrial(
      """
      CREATE TABLE t (id int PRIMARY KEY, j json, b jsonb, w text);
      INSERT INTO t VALUES (1, '{"a" : [1.50,\n null]}', '{"b": 1.10}', '"x"'), (2, NULL, 'null', '{'), (3, '[]', '7', '')
      """
    )
    let documents = try trial.export(["id", "j", "b"], as: .ndjson(json: ["j", "B"]))
    #expect(
      try Self.text(trial, documents) == """
        {"id":1,"j":{"a":[1.50,null]},"b":{"b":1.10}}
        {"id":2,"j":null,"b":null}
        {"id":3,"j":[],"b":7}

        """
    )
    let texts = try trial.export(["w", "id"], as: .ndjson(json: ["w", "id"]))
    let lines = try texts.lines(for: trial.keys(), onFailure: .skip(upTo: 2), in: trial.session)
    #expect(String(decoding: lines.bytes, as: UTF8.self) == #"{"w":"x","id":1}"# + "\n")
    #expect(lines.result.failures.map(\.number) == [1, 2])
    let message = try #require(lines.result.failures.first?.error.message)
    #expect(message.contains(#"column "w" holds "{", which is no JSON"#), "\(message)")
  }

  /// Exports all rows of a table `t` in both ways.
  ///
  /// - Returns: The lines that the server has begun, and those that are made of values.
  private static func both(_ trial: ChangeTrial, _ columns: [String]? = nil) throws -> (
    String, String
  ) {
    (
      try text(trial, trial.export(columns, as: LineFormat(.csv))),
      try text(trial, trial.export(columns, as: LineFormat(.csv), byServer: false))
    )
  }

  @Test func `text fields formatted by the server equal those formatted from values`() async throws
  {
    // Each text stands alone, at the beginning, in the middle and at the end of a line.
    let trial = try await ChangeTrial(
      #"""
      CREATE TABLE t (id int PRIMARY KEY, a text, b varchar(40), c text, d char(8), e "char", f name, g text COLLATE "C");
      INSERT INTO t SELECT row_number() OVER (), x, y, x, left(y, 8), left(x, 1)::"char", x, x
      FROM unnest(ARRAY['', ' ', 'a', ' a', 'a ', '  ', '"', '""', '","', ',', E'\n', E'\r', E'\r\n', E'a\nb', '\.', '\', '\N',
        'NULL', E'\t', 'ä', 'aä', 'äa', 'ä ', '日本', '👩‍👩‍👧', E'e\u0301', 'ä"', 'ä,', '",ä', E'ä\n', 'Infinity', '-Infinity', 'NaN',
        't', '1e999', '''', E'\u0001', E'\u007f', E'\u00a0', E'\ufeffx', ';', 'a,"b",c', 'y', '5.0', NULL]) AS x,
      unnest(ARRAY['', ' ', 'b', '"', ',', 'ß', E'\n', '\.', NULL]) AS y
      """#
    )
    for columns in [nil, ["a"], ["a", "c"], ["d"], ["id", "g"]] as [[String]?] {
      let (lines, values) = try Self.both(trial, columns)
      #expect(lines == values)
      #expect(values.utf8.count > 1_000)
    }
  }

  @Test func `number fields formatted by the server equal those formatted from values`()
    async throws
  {
    // The shortest digits are not the same for everybody where two numbers of as many are as near.
    var reals: [Double] = [
      0, -0.0, 1, -1, 5, 0.1, 1e-4, 9.9e-5, 1e-5, 1e5, 1e6, 1e14, 1e15, 1e16, 1e17, 1e22, 1e23,
      1e300, -1e300, .leastNonzeroMagnitude, .greatestFiniteMagnitude, .leastNormalMagnitude,
      0x1p53, 0x1p53 + 2, 0x1p54, 0x1p55, 123456.5, 140_737_488_355_328.125,
      140_737_488_355_328.375, 999_999_999_999_999, 16_777_216, 33_554_432, 262_144.125,
      262_144.375, 262_143.984375, 1.0 / 3, 2.0 / 3, .infinity, -.infinity, .nan,
    ]
    var random = SeededGenerator(seed: 15)
    for _ in 0..<2_000 {
      reals.append(Double(bitPattern: random.next()))
      reals.append(Double(Float(bitPattern: UInt32(truncatingIfNeeded: random.next()))))
      let many = Double(Int64.random(in: -1 << 60...1 << 60, using: &random))
      reals.append(many / Double(1 << Int.random(in: 0..<62, using: &random)))
      reals.append(Double(Int.random(in: -99_999...99_999, using: &random)) / 100)
    }
    let trial = try await ChangeTrial(
      "CREATE TABLE t (id int PRIMARY KEY, d float8, r real, n numeric)"
    )
    func text(_ real: some BinaryFloatingPoint & CustomStringConvertible) -> String {
      if real.isNaN { return "NaN" }
      return real.isFinite ? real.description : real < 0 ? "-Infinity" : "Infinity"
    }
    try trial.session.copyIn("COPY t FROM STDIN (FORMAT csv)") { input throws(BatchError) in
      for (number, real) in reals.enumerated() {
        let row = "\(number),\(text(real)),\(text(Float(real))),\(text(real))\n"
        try input.write(Array(row.utf8).span)
      }
    }
    let again = try await ChangeTrial.again(trial)
    let (lines, values) = try Self.both(again)
    let pairs = zip(lines.split(separator: "\r\n"), values.split(separator: "\r\n"))
    #expect(pairs.first { $0 != $1 } == nil)
    #expect(lines == values)
    #expect(values.split(separator: "\r\n").count == reals.count + 1)
  }

  @Test func `fields of every type formatted by the server equal those formatted from values`()
    async throws
  {
    let trial = try await ChangeTrial(
      #"""
      CREATE TYPE mood AS ENUM ('sad', 'it''s "ok"', ' ä,');
      CREATE TYPE pair AS (a int, b text);
      CREATE DOMAIN truth AS boolean;
      CREATE DOMAIN amount AS int CHECK (VALUE <> 7);
      CREATE DOMAIN share AS float8;
      CREATE DOMAIN moment AS timestamptz;
      CREATE TABLE t (id bigint PRIMARY KEY, b boolean, bt truth, s smallint, i int, ia amount, l bigint, o oid, x numeric(12, 3),
        n numeric, sh share, da date, ti time, tt timetz, ts timestamp, tz timestamptz, mo moment, iv interval, u uuid, j json,
        jb jsonb, ar int[], at text[], af float8[], m mood, p pair, ra int4range, ip inet, ci cidr, ma macaddr, bi bit(4),
        vb varbit, mn money, po point, tv tsvector, xm xml, rc regclass);
      INSERT INTO t VALUES
        (1, true, false, -32768, -2147483648, 2147483647, -9223372036854775808, 4294967295, -123456789.125, '-Infinity', 'NaN',
          '4713-01-01 BC', '24:00', '00:00:00.000001-15:59', '0044-03-15 12:00 BC', '0044-03-15 12:00+00 BC', '-infinity',
          '-1 year -2 days 03:04:05.6', '00000000-0000-0000-0000-000000000000', '{"a": [1, "ä"],  "b": "\n"}', '{"b": 1e300, "ä": " "}',
          '{{1,2},{3,NULL}}', '{"",NULL,"NULL"," a","a,b","\"","ä","\\"}', '{1,-0,1e300,NaN,Infinity}', ' ä,', '(1,"a ""b"", c")',
          '[1,5)', '192.168.0.1', '10.0.0.0/8', '08:00:2b:01:02:03', '1010', '101', '-1234.5', '(1,2.5)', 'a:1 b', '<a b="c">ä</a>',
          'pg_class'),
        (2, false, true, 32767, 2147483647, -1, 9223372036854775807, 0, 0, 'Infinity', '-Infinity', 'infinity', '00:00', '12:00+00',
          'infinity', '294276-12-31 23:59:59.999999+00', '2024-02-29 23:59:59.5+05:30', '0', 'ffffffff-ffff-ffff-ffff-ffffffffffff',
          '""', '""', '{}', '{}', '{}', 'sad', '(,)', 'empty', '::1/64', '::1/128', '00:00:00:00:00:00', '0000', '', '0',
          '(-0,1e300)', '', '', NULL),
        (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
          NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
        (4, true, true, 0, 0, 0, 0, 1, 1e8, 'NaN', 1e15, '0001-01-01', '23:59:59.999999', '23:59:59+15:59', '1970-01-01',
          '1969-12-31 23:59:59.999999+00', '1900-01-01 00:00:00+00', '178000000 years', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
          'null', 'null', '[0:1]={7,8}', '{{a,b},{c,d}}', '{0.1}', 'it''s "ok"', '(3, )', '(,)', '1.2.3.4/24', '1.2.3.0/24',
          'ff:ff:ff:ff:ff:ff', '1111', '0', '92233720368547758.07', '(Infinity,NaN)', '''a b'':1A', '', 'pg_type')
      """#
    )
    let (lines, values) = try Self.both(trial)
    #expect(lines == values)
    // Each by itself, so that no other one hides where a field begins.
    for column in trial.table.columns.map(\.name) {
      let (lines, values) = try Self.both(trial, [column])
      #expect(lines == values, "\(column)")
    }
    #expect(
      try trial.export(as: LineFormat(.csv)).statementText().contains(
        #""t"."s", "t"."i", "t"."ia""#
      )
    )
    #expect(values.contains(",-Infinity,NaN,4713-01-01 BC,24:00:00,"))
  }

  @Test(arguments: [
    ("bigint", "g"), ("bigint", "g * 3 - 70"), ("text", "'k' || g"), ("uuid", "md5(g::text)::uuid"),
  ])
  func `an export has identical bytes for every chunk size and counts missing rows`(
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
    let export = try trial.export(as: LineFormat(.ndjson), if: "w <> 'y'")
    let whole = try export.lines(for: trial.keys(), in: trial.session)
    #expect(whole.count == 270)
    #expect(whole.result.outcomes.succeeded == 266)
    #expect(whole.result.outcomes.vanished == 3)
    #expect(whole.result.outcomes.noLongerMatching == 1)
    #expect(whole.result.passedOver.vanished.contains(0))
    for (size, held) in [(1, 1 << 20), (7, 1 << 20), (100, 500), (270, 2000)] {
      var bytes: [UInt8] = []
      var outcomes = Outcomes()
      var next = 0
      while next < 270 {
        let keys = try trial.keys(next..<min(next + size, 270))
        let lines = try export.lines(for: keys, holding: held, in: trial.session)
        bytes += lines.bytes
        outcomes += lines.result.outcomes
        #expect(lines.result.outcomes.total == lines.count)
        next += lines.count
      }
      #expect(bytes == whole.bytes, "chunks of \(size), \(held) bytes held")
      #expect(outcomes == whole.result.outcomes)
    }
  }

  @Test func `an unreadable row fails alone, and the other rows are exported`() async throws {
    let trial = try await ChangeTrial(
      "CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t SELECT g, g FROM generate_series(1, 50) AS g"
    )
    let export = try trial.export(as: LineFormat(.csv), if: "1 / (n - 30) < 9")
    let lines = try export.lines(for: trial.keys(), onFailure: .skip(upTo: 1), in: trial.session)
    #expect(lines.result.failures.map(\.number) == [29])
    #expect(lines.result.succeeded == 49)
    #expect(lines.count == 50)
    #expect(String(decoding: lines.bytes, as: UTF8.self).split(separator: "\r\n").count == 49)
    let error = #expect(throws: BatchError.self) {
      try export.lines(for: trial.keys(), in: trial.session)
    }
    #expect(error?.message.contains("identifier 30:") == true)
  }
}
#endif
