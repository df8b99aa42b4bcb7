import BatchIdentifiers
import BatchPipeline
import BatchSQLite
import SystemPackage
import Testing

@Suite struct JobDecodingTests {
  @Test func `a complete update is decoded in every part`() throws {
    let job = try Job(
      json: Array(CompleteJob.update.utf8),
      file: "jobs/reprice.json",
      baseDirectory: "jobs"
    )
    #expect(job.version == 1)
    #expect(job.name == "reprice")
    #expect(job.description == "Gives every order without a price its price")
    #expect(
      job.database
        == .init(
          path: "jobs/shop.db",
          busyTimeout: .milliseconds(250),
          synchronous: .full,
          journalMode: .keep,
          readOnly: false,
          coreData: .overwrite,
          extensions: ["mod_spatialite", "jobs/lib/own.so"]
        )
    )
    #expect(
      job.parameters == [
        "before": .init(.date),
        "factor": .init(.real, default: .value(.real(2))),
        "token": .init(.text, required: false, secret: true),
        "now": .init(.timestamp, default: .runStartedAt),
        "run": .init(.text, default: .runID),
      ]
    )
    #expect(
      job.source
        == .init(
          entity: "orders",
          where: "price IS NULL AND day < :before",
          orderBy: [.init("priority", descending: true), .init("id")],
          limit: 1_000_000,
          recheck: .fail,
          key: ["id"]
        )
    )
    let assignments: [Job.Assignment] = [
      .init("price", to: "cost * :factor"), .init("changed", to: ":now"),
      .init("a \"b\"", to: "NULL"),
    ]
    #expect(job.action == .update(.init(set: assignments)))
    #expect(
      job.chunk == .init(size: 500, target: .milliseconds(100), minimum: 50, maximum: 2000)
    )
    #expect(job.workers == 3)
    #expect(
      job.checkpoint
        == .init(
          path: "jobs/state/reprice.batch",
          interval: .milliseconds(1500),
          keepRunIDs: .seconds(90 * 86_400)
        )
    )
  }

  @Test func `an omitted key gets its default`() throws {
    let job = try Job(
      json: Array(CompleteJob.delete.utf8),
      file: "/jobs/night.json",
      baseDirectory: "/jobs"
    )
    #expect(job.database == .init(path: "/data/shop.db"))
    #expect(job.database.busyTimeout == .seconds(5))
    #expect(job.source == .init(entity: "orders", identifiers: "/jobs/some.ids"))
    #expect(job.source.recheck == .row)
    #expect(job.action == .delete(.init(archive: "orders_archive", createsArchive: true)))
    #expect(job.chunk.size == 1000)
    #expect(job.workers == nil)
    #expect(job.checkpoint == .init(path: "/jobs/night.batch"))
    #expect(job.checkpointPath == "/jobs/night.batch")
  }

  @Test func `an export needs neither where nor everything`() throws {
    let job = try Job(json: Array(CompleteJob.export.utf8))
    let export = Job.Export(
      file: "orders.csv",
      format: .lines(.csv(CSVForm(delimiter: ";", null: "NA", bom: true, quote: .all)), .gzip),
      columns: ["id", "price"],
      overwrite: true,
      invalidText: .fail
    )
    #expect(job.action == .export(export))
    #expect(job.checkpointPath == "job.batch")
  }

  @Test func `a decoded job knows the places of its values for later errors`() throws {
    let job = try Job(json: Array(CompleteJob.update.utf8), file: "j.json")
    #expect(job.place(of: .where) == "j.json:19:14: source.where")
    #expect(job.place(of: .set("price")) == "j.json:28:23: action.set.price")
    #expect(job.place(of: .set("a \"b\"")) == #"j.json:28:71: action.set["a \"b\""]"#)
    #expect(job.place(of: .orderBy(1)) == "j.json:20:30: source.orderBy[1]")
    #expect(job.place(of: .identifiers) == "j.json:17:13: source.identifiers")
    #expect(job.place(of: JobPath()) == "j.json:1:1")
    let inCode = Job(
      name: "x",
      database: .init(path: "x.db"),
      source: .init(entity: "t"),
      action: .delete(.init())
    )
    #expect(inCode.place(of: .where) == "source.where")
  }

  @Test(arguments: [
    ("\"wehre\": \"a\",", "source.wehre: unknown key; did you mean \"where\"?"),
    (
      "\"zzzzzz\": 1,",
      "source.zzzzzz: unknown key; the keys here are "
        + "entity, query, where, orderBy, limit, everything, recheck, identifiers, key, since, "
        + "changes"
    ),
    ("\"csv\": \"a.csv\",", "source.csv: not supported yet; remove it"),
    (
      "\"limit\": \"5\",",
      "source.limit: expected a whole number, found the string \"5\"; write 5 without quotes"
    ),
    ("\"limit\": 5.0,", "source.limit: expected a whole number, found the number 5.0"),
    ("\"limit\": 0,", "source.limit: is 0; select at least 1 row"),
    ("\"limit\": -3,", "source.limit: is -3; select at least 1 row"),
    (
      "\"recheck\": \"skipp\",", "source.recheck: unknown recheck \"skipp\"; did you mean \"skip\"?"
    ),
    (
      "\"recheck\": 1,",
      "source.recheck: expected one of \"row\", \"skip\", \"fail\", \"off\", found the number 1"
    ),
    (
      "\"orderBy\": \"id\",",
      "source.orderBy: expected an array of strings, found the string \"id\"; write [\"id\"]"
    ),
    ("\"orderBy\": [null],", "source.orderBy[0]: expected a string, found null"),
    ("\"orderBy\": [\"-\"],", "source.orderBy[0]: the column has no name"),
    ("\"orderBy\": [\"a\", \"-A\"],", "source.orderBy[1]: the column \"A\" is named twice"),
    ("\"key\": [],", "source.key: is empty; name at least one column"),
    ("\"everything\": 1,", "source.everything: expected true or false, found the number 1"),
    ("\"where\": null,", "source.where: expected a string, found null"),
    ("\"where\": \" \",", "source.where: is empty; write a condition, or remove the key"),
    (
      "\"identifiers\": \"a\\u0000\",",
      "source.identifiers: a path cannot have the character U+0000"
    ),
  ])
  func `the error of a wrong member of source names its place`(member: String, expected: String) {
    let text = """
      { "version": 1, "name": "x", "database": { "path": "x.db" },
        "source": { \(member) "entity": "t" },
        "action": { "type": "export", "file": "x.csv", "format": "csv" } }
      """
    let error = #expect(throws: BatchError.self) { try Job(json: Array(text.utf8)) }
    #expect(error?.code == .invalidJob)
    #expect(error?.place?.hasPrefix("job.json:2:") == true)
    #expect(error?.description.hasSuffix(expected) == true, "\(error?.description ?? "")")
  }

  @Test(arguments: [
    (
      #""hooks": { "onEnd": ["x"] }"#,
      "job.json:4:14: hooks.onEnd: unknown key; the keys here are onStart, onFinish, onFailure, onThrottle,"
        + " onStop, onCancel, onRefuse, onKill"
    ),
    (
      #""hooks": { "onStart": "x" }"#,
      "job.json:4:25: hooks.onStart: expected an array of strings, found the string \"x\"; "
        + "write [\"x\"]"
    ),
    (#""hooks": { "onStart": [] }"#, "job.json:4:25: hooks.onStart: is empty; give it a value"),
    (
      #""hooks": { "onStart": ["a\u0000"] }"#,
      "job.json:4:26: hooks.onStart[0]: an argument cannot have the character U+0000"
    ),
    (#""report": {}"#, "job.json:4:13: report.path: missing; add the key \"path\""),
    (
      #""report": { "path": "run.txt" }"#,
      "job.json:4:23: report.path: \"run.txt\" has no form; end it in .html or .json"
    ),
    (#""skip": {}"#, "job.json:4:11: skip.limit: missing; add the key \"limit\""),
    (
      #""retry": { "limit": 1001 }"#,
      "job.json:4:23: retry.limit: is 1001; choose a number from 0 to 1000"
    ),
    (
      #""retry": { "backoff": "0s" }"#,
      "job.json:4:25: retry.backoff: is not a positive duration; write one such as \"5s\""
    ),
    (
      #""throttle": { "identifiersPerSecond": 0 }"#,
      "job.json:4:41: throttle.identifiersPerSecond: is 0.0; choose a number from 0.001 to 1000000000"
    ),
    (
      #""throttle": { "sleepRatio": -1 }"#,
      "job.json:4:31: throttle.sleepRatio: is -1.0; choose a number from 0 to 100"
    ),
    (
      #""throttle": { "maximumWAL": "1kB" }"#,
      "job.json:4:31: throttle.maximumWAL: is 1000 bytes; choose at least \"1MB\""
    ),
    (
      #""throttle": { "minimumFreeDisk": 5 }"#,
      "job.json:4:36: throttle.minimumFreeDisk: expected a size such as \"64MB\", found the number 5"
    ),
    (
      #""throttle": { "flagFile": "" }"#,
      "job.json:4:29: throttle.flagFile: is empty; give it a value"
    ),
    (
      #""throttle": { "window": "6-22" }"#,
      "job.json:4:27: throttle.window: \"6-22\" is not a part of the day; write two different times,"
        + " such as \"22:00-06:00\""
    ),
    (
      #""limits": { "runtime": "366d" }"#,
      "job.json:4:26: limits.runtime: is too long; 365 days are the most"
    ),
    (
      #""skip": { "limit": -1 }"#,
      "job.json:4:22: skip.limit: is -1; choose a number from 0 to 100000"
    ),
    (
      #""skip": { "limit": 0, "ratio": 1.5 }"#,
      "job.json:4:34: skip.ratio: is 1.5; choose a part from 0 to 1"
    ),
    (
      #""skip": { "limit": 1, "ratio": "1%" }"#,
      "job.json:4:34: skip.ratio: expected a number, found the string \"1%\""
    ),
    (#""throttle": null"#, "job.json:4:15: throttle: expected an object, found null"),
    (
      #""chunk": { "minimum": 10 }"#,
      "job.json:4:25: chunk.minimum: bounds a target that is not given; add chunk.target, or remove it"
    ),
    (
      #""chunk": { "size": 0 }"#, "job.json:4:22: chunk.size: is 0; choose a size from 1 to 1000000"
    ),
    (
      #""chunk": 1000"#,
      "job.json:4:12: chunk: expected an object, found the number 1000; write { \"size\": 1000 }"
    ),
    (#""workers": 0"#, "job.json:4:14: workers: is 0; choose a number from 1 to 256"),
    (#""workers": -1"#, "job.json:4:14: workers: is -1; choose a number from 1 to 256"),
    (
      #""checkpoint": { "interval": 5 }"#,
      "job.json:4:31: checkpoint.interval: "
        + "expected a duration such as \"5s\", found the number 5"
    ),
    (
      #""checkpoint": { "interval": "5" }"#,
      "job.json:4:31: checkpoint.interval: \"5\" is not a duration: the unit is missing; "
        + "expected a number and a unit, such as \"5s\""
    ),
    (
      #""checkpoint": { "interval": "0s" }"#,
      "job.json:4:31: checkpoint.interval: is not a positive duration; write one such as \"5s\""
    ),
    (
      #""checkpoint": { "interval": "25h" }"#,
      "job.json:4:31: checkpoint.interval: is too long; 24 hours are the most"
    ),
    (
      #""checkpoint": { "path": "./x.db" }"#,
      "job.json:4:27: checkpoint.path: the checkpoint and the database are the same file; "
        + "choose another path"
    ),
    (
      #""parameters": { "1a": { "type": "text" } }"#,
      "job.json:4:25: parameters.1a: \"1a\" is not a parameter name; "
        + "begin with a letter and use A-Z a-z 0-9 _"
    ),
    (
      #""parameters": { "a": { "type": "int" } }"#,
      "job.json:4:34: parameters.a.type: unknown type \"int\"; "
        + "there are \"integer\", \"real\", \"text\", \"boolean\", \"date\", \"timestamp\""
    ),
    (
      #""parameters": { "a": { "type": "integer", "default": 1.5 } }"#,
      "job.json:4:56: parameters.a.default: expected an integer, found the number 1.5; "
        + "the parameter has the type integer"
    ),
    (
      #""parameters": { "a": { "type": "integer", "default": "hunter2", "secret": true } }"#,
      "job.json:4:56: parameters.a.default: expected an integer, found something else; "
        + "the parameter has the type integer"
    ),
    (
      #""parameters": { "a": { "type": "date", "default": "2021-02-29" } }"#,
      "job.json:4:53: parameters.a.default: \"2021-02-29\" is not a date: 2021-02 has 28 days; "
        + "expected YYYY-MM-DD"
    ),
    (
      #""parameters": { "a": { "type": "integer", "default": "$runID" } }"#,
      "job.json:4:56: parameters.a.default: \"$runID\" is a text, not an integer; "
        + "declare the type text"
    ),
    (
      #""parameters": { "a": { "type": "text", "default": "$runStarted" } }"#,
      "job.json:4:53: parameters.a.default: unknown value \"$runStarted\"; "
        + "did you mean \"$runStartedAt\"?"
    ),
  ])
  func `the error of a wrong section names its place`(member: String, expected: String) {
    let text = """
      { "version": 1, "name": "x", "database": { "path": "x.db" },
        "source": { "entity": "t" },
        "action": { "type": "export", "file": "x.csv", "format": "csv" },
        \(member) }
      """
    let error = #expect(throws: BatchError.self) { try Job(json: Array(text.utf8)) }
    #expect(error?.description == expected)
  }

  @Test(arguments: [
    (#"{}"#, "job.json:3:13: action.type: missing; add the key \"type\""),
    (
      #"{ "type": "transform", "columns": ["a"], "writes": ["b"] }"#,
      "job.json:3:13: action: \"handler\" or \"command\" is missing; add one of them"
    ),
    (
      #"{ "type": "transform", "columns": ["a"], "writes": ["b"], "handler": "h", "command": [] }"#,
      "job.json:3:87: action.command: contradicts action.handler; remove one of the two"
    ),
    (
      #"{ "type": "transform", "columns": ["a"], "writes": ["b"], "command": [] }"#,
      "job.json:3:82: action.command: is empty; give it a value"
    ),
    (
      #"{ "type": "transform", "columns": ["a"], "writes": ["b", "B"], "handler": "h" }"#,
      "job.json:3:70: action.writes[1]: the column \"B\" is named twice"
    ),
    (
      #"{ "type": "transform", "columns": ["a"], "writes": ["b"], "handler": "" }"#,
      "job.json:3:82: action.handler: is empty; give it a value"
    ),
    (
      #"{ "type": "transform", "columns": ["a"], "writes": ["b"], "handler": "h", "timeout": "0s" }"#,
      "job.json:3:98: action.timeout: is not a positive duration; write one such as \"5s\""
    ),
    (
      #"{ "type": "insert" }"#,
      "job.json:3:23: action.type: \"insert\" is not supported yet; "
        + "there are \"update\", \"delete\", \"export\", \"transform\", \"load\""
    ),
    (
      #"{ "type": "upadte" }"#,
      "job.json:3:23: action.type: unknown type \"upadte\"; did you mean \"update\"?"
    ),
    (
      #"{ "tpye": "update", "set": { "a": "1" } }"#,
      "job.json:3:13: action.type: missing; add the key \"type\"\n"
        + "job.json:3:15: action.tpye: unknown key; did you mean \"type\"?"
    ),
    (#"{ "type": "update" }"#, "job.json:3:13: action.set: missing; add the key \"set\""),
    (
      #"{ "type": "update", "set": {} }"#,
      "job.json:3:40: action.set: is empty; name at least one column"
    ),
    (
      #"{ "type": "update", "set": { "a": 5 } }"#,
      "job.json:3:47: action.set.a: expected an SQL expression, found the number 5; "
        + "write it as a string, such as \"coalesce(price, 0)\""
    ),
    (
      #"{ "type": "update", "set": { "a": "" } }"#,
      "job.json:3:47: action.set.a: the expression is empty; write NULL to clear it"
    ),
    (
      #"{ "type": "update", "set": { "a": "1", "A": "2" } }"#,
      "job.json:3:57: action.set.A: the column \"A\" is named twice"
    ),
    (
      #"{ "type": "delete", "set": { "a": "1" } }"#,
      "job.json:3:33: action.set: is a key of the action update; remove it, or change the type"
    ),
    (
      #"{ "type": "delete", "archive": 1 }"#,
      "job.json:3:44: action.archive: expected an object, found the number 1"
    ),
    (
      #"{ "type": "delete", "archive": { "entity": "T" } }"#,
      "job.json:3:56: action.archive.entity: is the entity that rows are deleted from; "
        + "name another entity"
    ),
    (
      #"{ "type": "export", "file": "x.db", "format": "csv" }"#,
      "job.json:3:41: action.file: the exported file and the database are the same file; "
        + "choose another path"
    ),
    (
      #"{ "type": "export", "file": "x.csv", "folder": "x", "format": "csv" }"#,
      "job.json:3:50: action.folder: contradicts action.file; remove one of the two"
    ),
    (
      #"{ "type": "export", "format": "csv" }"#,
      "job.json:3:13: action: \"file\" or \"folder\" is missing; add one of them"
    ),
    (
      #"{ "type": "export", "file": "x.csv", "format": "cvs" }"#,
      "job.json:3:60: action.format: unknown format \"cvs\"; did you mean \"csv\"?"
    ),
  ])
  func `the error of a wrong action names its place`(action: String, expected: String) {
    let text = """
      { "version": 1, "name": "x", "database": { "path": "x.db" },
        "source": { "entity": "t", "where": "a" },
        "action": \(action) }
      """
    let error = #expect(throws: BatchError.self) { try Job(json: Array(text.utf8)) }
    #expect(error?.description == expected)
  }

  @Test func `an export to a folder may limit its files, and have partitions`() throws {
    let job = try Job(
      json: Array(CompleteJob.parts.utf8),
      file: "j.json",
      baseDirectory: "/jobs"
    )
    #expect(
      job.action
        == .export(
          .init(file: "/jobs/orders", format: .csv, isInParts: true, maximumFile: 256_000_000)
        )
    )
    #expect(job.place(of: .exportFolder) == "j.json:6:43: action.folder")
    let lake = CompleteJob.parts.replacing(
      #""folder": "orders""#,
      with: #""folder": "lake/run={runID}/c={a b}/y={y}""#
    )
    let partitioned = try Job(json: Array(lake.utf8), file: "j.json", baseDirectory: "/jobs")
    guard case .export(let export) = partitioned.action else {
      Issue.record("no export")
      return
    }
    #expect(export.file == "/jobs/lake/run={runID}")
    #expect(export.partitions == [.init("c", column: "a b"), .init("y", column: "y")])
    let file = CompleteJob.parts.replacing(#""folder""#, with: #""file""#)
    let other = #expect(throws: BatchError.self) { try Job(json: Array(file.utf8)) }
    #expect(other?.description.contains("only exports to a folder have it") == true)
  }

  @Test(arguments: [
    (
      "2",
      "job.json:1:14: version: version 2 was written for a newer batch; "
        + "install a newer batch, or write the job for version 1"
    ),
    ("0", "job.json:1:14: version: there is no version 0; write 1"),
    ("-1", "job.json:1:14: version: there is no version -1; write 1"),
  ])
  func `a job of another version is refused before its keys are read`(
    version: String,
    expected: String
  ) {
    let text = "{ \"version\": \(version), \"newKey\": 1 }"
    let error = #expect(throws: BatchError.self) { try Job(json: Array(text.utf8)) }
    #expect(error?.description == expected)
  }

  @Test func `all problems of a job are reported, one per line, in the order of the file`() {
    let text = """
      {
        "version": "1",
        "databse": { "path": "x.db" },
        "source": { "entity": 5 },
        "action": { "type": "delete" }
      }
      """
    let error = #expect(throws: BatchError.self) { try Job(json: Array(text.utf8)) }
    #expect(
      error?.description == """
        job.json:1:1: name: missing; add the key "name"
        job.json:1:1: database: missing; add the key "database"
        job.json:2:14: version: expected a whole number, found the string "1"; write 1 without quotes
        job.json:3:3: databse: unknown key; did you mean "database"?
        job.json:4:25: source.entity: expected a string, found the number 5
        """
    )
  }

  @Test func `only the first hundred of many problems are reported`() {
    let keys = (1...200).map { "\"unknown\($0)\": 1" }.joined(separator: ",\n")
    let error = #expect(throws: BatchError.self) { try Job(json: Array("{\(keys)}".utf8)) }
    let lines = error?.description.split(separator: "\n") ?? []
    #expect(lines.count == 101)
    #expect(lines.last == "and 105 more")
  }

  @Test func `a job whose root is not an object is refused`() {
    let error = #expect(throws: BatchError.self) { try Job(json: Array("[1]".utf8)) }
    #expect(error?.description == "job.json:1:1: expected an object, found an array")
  }
}
