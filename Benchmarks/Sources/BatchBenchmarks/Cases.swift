/// The cases and their contenders.
struct Cases {
  let tools: Tools

  var all: [Case] {
    fetches + updates + contexts + transforms + deletes + exports + [resume]
      + Table.all.flatMap(cases)
  }

  // MARK: Identifiers

  private var fetches: [Case] {
    [
      ("fetch-dense", "identifiers of all rows", "1"),
      ("fetch-index", "identifiers by an index (carrier is UA, 17 %)", "carrier = 'UA'"),
      ("fetch-scan", "identifiers without an index (an hour late, 8 %)", "dep_delay > 60"),
    ].map { name, title, condition in
      Case(
        name: name,
        title: title,
        contenders: [
          Contender(
            name: "fetchIdentifiers",
            arguments: [
              tools.product("LibraryBenchmark"), "identifiers", "{db}", "flights", condition, "1",
            ],
            isOurs: true
          ),
          Contender(
            name: "fetchIdentifiers, two readers",
            arguments: [
              tools.product("LibraryBenchmark"), "identifiers", "{db}", "flights", condition, "2",
            ]
          ),
          Contender(name: "C", arguments: [tools.product("CTwin"), "fetch", "{db}", condition]),
          Contender(
            name: "Python sqlite3",
            arguments: [tools.python, tools.twin("fetch.py"), "{db}", condition]
          ),
        ]
      )
    }
  }

  // MARK: Updates

  private var updates: [Case] {
    [
      ("update-dense", "update of all rows by an expression", "1"),
      ("update-8", "update of 8 % of the rows, no index", "hour = 8"),
      ("update-1", "update of 1 % of the rows, no index", "dest = 'PIT'"),
    ].map { name, title, condition in
      let assignment = "arr_delay = coalesce(arr_delay, 0) + 1"
      return Case(
        name: name,
        title: title,
        check: "SELECT sum(arr_delay) FROM flights",
        contenders: [
          batch(
            action: #"{"type": "update", "set": {"arr_delay": "coalesce(arr_delay, 0) + 1"}}"#,
            where: condition == "1" ? nil : condition
          ),
          sql("one UPDATE", "UPDATE flights SET \(assignment) WHERE \(condition)"),
          Contender(
            name: "C, naive loop",
            arguments: [tools.product("CTwin"), "update", "{db}", condition]
          ),
          Contender(
            name: "Python sqlite3",
            arguments: [tools.python, tools.twin("update.py"), "{db}", condition]
          ),
        ]
      )
    } + [
      Case(
        name: "convert",
        title: "one column, lower-cased",
        check: "SELECT count(DISTINCT dest), min(dest) FROM flights",
        contenders: [
          batch(action: #"{"type": "update", "set": {"dest": "lower(dest)"}}"#, where: nil),
          sql("one UPDATE", "UPDATE flights SET dest = lower(dest)"),
          Contender(
            name: "sqlite-utils convert",
            arguments: [
              tools.python, "-m", "sqlite_utils", "convert", "--silent", "{db}", "flights", "dest",
              "value.lower()",
            ],
            scale: .once,
            needs: [.pythonModule("sqlite_utils")]
          ),
        ]
      )
    ]
  }

  // MARK: Work by objects

  private var contexts: [Case] {
    let copies = """
      CREATE TABLE copies(
        id INTEGER NOT NULL PRIMARY KEY, delay INTEGER, air_time INTEGER, distance REAL
      )
      """
    return [
      work("read", "every object read", check: nil),
      work(
        "update",
        "one property of every object set",
        check: "SELECT sum(arr_delay) FROM flights"
      ),
      work(
        "insert",
        "an object inserted for each",
        check: "SELECT count(*), sum(delay) FROM copies",
        preparation: copies
      ),
      work("delete", "every object deleted", check: "SELECT count(*) FROM flights"),
      upserts,
      bulk("bulk-insert", "1,000,000 rows inserted without objects", existing: false),
      bulk("bulk-upsert", "the same, half of them there already", existing: true),
    ]
  }

  /// 1,000,000 new rows of five columns.
  private func bulk(_ name: String, _ title: String, existing: Bool) -> Case {
    var visits = """
      CREATE TABLE visits(number INTEGER NOT NULL PRIMARY KEY, place TEXT, guest TEXT, minutes INTEGER,
        cost REAL);
      """
    if existing {
      visits += """
        WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 2 FROM c WHERE i < 999998)
        INSERT INTO visits SELECT i, 'old', NULL, 0, 0 FROM c
        """
    }
    let how = existing ? "bulk-update" : "bulk"
    var contenders = [
      Contender(
        name: "BatchInsertRequest",
        arguments: [tools.product("ContextBenchmark"), how, "{db}", "1000000"],
        scale: .once,
        isOurs: true
      ),
      Contender(
        name: "BatchRun(loading:)",
        arguments: [
          tools.product("ContextBenchmark"), existing ? "load-update" : "load", "{db}", "1000000",
          "{dir}/visits.batch",
        ],
        scale: .once,
        isOurs: true
      ),
      Contender(
        name: "Python executemany",
        arguments: [tools.python, tools.twin("insert.py"), "{db}", "1000000"]
          + (existing ? ["update"] : []),
        scale: .once
      ),
    ]
    for index in contenders.indices { contenders[index].preparation = visits }
    return Case(
      name: name,
      title: title,
      check: "SELECT count(*), sum(minutes), sum(cost), max(place), sum(length(guest)) FROM visits",
      contenders: contenders
    )
  }

  /// 100,000 new objects, half of them with the key of an existing row.
  private var upserts: Case {
    let places = """
      CREATE TABLE places(code INTEGER NOT NULL PRIMARY KEY, name TEXT, visits INTEGER, height REAL);
      WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 2 FROM c WHERE i < 99998)
      INSERT INTO places SELECT i, 'old', 0, 0 FROM c
      """
    var contenders = [
      Contender(
        name: "a context, .unique",
        arguments: [tools.product("ContextBenchmark"), "upsert", "{db}"],
        scale: .once,
        isOurs: true
      ),
      Contender(
        name: "SQLAlchemy merge",
        arguments: [tools.python, tools.twin("contexts_sqlalchemy.py"), "{db}", "upsert"],
        scale: .once,
        needs: [.pythonModule("sqlalchemy")]
      ),
    ]
    for index in contenders.indices { contenders[index].preparation = places }
    return Case(
      name: "contexts-upsert",
      title: "work by objects: 100,000 new ones saved, half of them there already",
      check: "SELECT count(*), sum(visits), sum(height), max(name) FROM places",
      contenders: contenders
    )
  }

  private func work(
    _ how: String,
    _ title: String,
    check: String?,
    preparation: String? = nil
  ) -> Case {
    var contenders = [
      Contender(
        name: "BatchRun, contexts",
        arguments: [tools.product("ContextBenchmark"), how, "{db}", "{dir}/objects.batch"],
        isOurs: true
      ),
      Contender(
        name: "SQLAlchemy",
        arguments: [tools.python, tools.twin("contexts_sqlalchemy.py"), "{db}", how],
        scale: .once,
        needs: [.pythonModule("sqlalchemy")]
      ),
      Contender(
        name: "ActiveRecord",
        arguments: ["ruby", tools.twin("contexts_active_record.rb"), "{db}", how],
        scale: .once,
        needs: [.command("ruby"), .rubyLibrary("active_record")]
      ),
    ]
    if how == "update" {
      let (columns, writes) = (#""dep_delay", "distance", "air_time""#, #""arr_delay""#)
      contenders.append(
        handler("three-objects", "objects", columns: "\(columns), \(writes)", writes: writes)
      )
    }
    for index in contenders.indices { contenders[index].preparation = preparation }
    return Case(
      name: "contexts-\(how)",
      title: "work by objects: \(title)",
      check: check,
      contenders: contenders
    )
  }

  // MARK: Transforms

  private var transforms: [Case] {
    [
      transform("three", "transform: 3 columns read, 1 written"),
      transform("all", "transform: 20 columns read, 2 written"),
    ]
  }

  private func transform(_ how: String, _ title: String) -> Case {
    var contenders: [Contender] = []
    if how == "three" {
      contenders.append(
        sql(
          "one UPDATE",
          """
          UPDATE flights SET arr_delay = coalesce(dep_delay, 0) + CAST(distance AS INTEGER) / 10
            - coalesce(air_time, 0)
          """
        )
      )
    }
    contenders += ours(how)
    contenders += [
      Contender(name: "C, naive loop", arguments: [tools.product("CTwin"), "naive", "{db}", how]),
      Contender(
        name: "C, two threads",
        arguments: [tools.product("CTwin"), "best", "{db}", how]
      ),
      Contender(name: "GRDB", arguments: [tools.product("GRDBTwin"), "{db}", how], scale: .once),
      Contender(
        name: "Python sqlite3",
        arguments: [tools.python, tools.twin("transform.py"), "{db}", how],
        scale: .once
      ),
      Contender(
        name: "SQLAlchemy",
        arguments: [tools.python, tools.twin("transform_sqlalchemy.py"), "{db}", how],
        scale: .once,
        needs: [.pythonModule("sqlalchemy")]
      ),
      Contender(
        name: "Django bulk_update",
        arguments: [tools.python, tools.twin("transform_django.py"), "{db}", how],
        scale: .once,
        needs: [.pythonModule("django")]
      ),
      Contender(
        name: "ActiveRecord",
        arguments: ["ruby", tools.twin("transform_active_record.rb"), "{db}", how],
        scale: .once,
        needs: [.command("ruby"), .rubyLibrary("active_record")]
      ),
    ]
    if how == "three" {
      contenders.insert(
        Contender(
          name: "C, naive loop, 3 columns",
          arguments: [tools.product("CTwin"), "naive", "{db}", "declared"]
        ),
        at: 2
      )
    }
    return Case(
      name: "transform-\(how)",
      title: title,
      check: "SELECT sum(arr_delay), count(DISTINCT tailnum) FROM flights",
      contenders: contenders
    )
  }

  private func ours(_ how: String) -> [Contender] {
    guard how == "three" else {
      let all = """
        "id", "year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time", \
        "sched_arr_time", "arr_delay", "carrier", "flight", "tailnum", "origin", "dest", \
        "air_time", "distance", "hour", "minute", "time_hour"
        """
      let writes = #""arr_delay", "tailnum""#
      return [handler("all", "by row", columns: all, writes: writes, isOurs: true)]
    }
    let (columns, writes) = (#""dep_delay", "distance", "air_time""#, #""arr_delay""#)
    let program = #""python3", "\#(tools.twin("transform_command.py"))""#
    return [
      handler("three", "by row", columns: columns, writes: writes, isOurs: true),
      handler("three-columns", "by column", columns: columns, writes: writes),
      handler("three-objects", "objects", columns: "\(columns), \(writes)", writes: writes),
      transform("Python program", columns, writes, #""command": [\#(program)]"#, scale: .once),
      transform(
        "one Python program",
        columns,
        writes,
        #""command": [\#(program)]"#,
        scale: .once,
        workers: 1
      ),
    ]
  }

  private func handler(
    _ handler: String,
    _ name: String,
    columns: String,
    writes: String,
    isOurs: Bool = false
  ) -> Contender {
    transform(name, columns, writes, #""handler": "\#(handler)""#, isOurs: isOurs)
  }

  private func transform(
    _ name: String,
    _ columns: String,
    _ writes: String,
    _ program: String,
    scale: Contender.Scale = .tenfold,
    workers: Int = 2,
    isOurs: Bool = false
  ) -> Contender {
    let action = """
      {"type": "transform", "columns": [\(columns)], "writes": [\(writes)], \(program)}
      """
    return Contender(
      name: "batch run, \(name)",
      arguments: [
        tools.product("TransformBenchmark"), "run", "{dir}/job.json", "--quiet", "--workers",
        "\(workers)",
      ],
      scale: scale,
      files: ["job.json": job(action: action, where: nil)],
      isOurs: isOurs
    )
  }

  // MARK: Deletes and exports

  private var deletes: [Case] {
    let check = "SELECT (SELECT count(*) FROM flights), (SELECT count(*) FROM flights_archive)"
    return [
      Case(
        name: "delete",
        title: "delete of 17 % of the rows",
        check: check,
        contenders: [
          batch(action: #"{"type": "delete"}"#, where: "carrier = 'UA'"),
          sql("one DELETE", "DELETE FROM flights WHERE carrier = 'UA'"),
        ]
      ),
      Case(
        name: "delete-archive",
        title: "the same, into an archive table",
        check: check,
        contenders: [
          batch(
            action: #"{"type": "delete", "archive": {"entity": "flights_archive"}}"#,
            where: "carrier = 'UA'"
          ),
          sql(
            "INSERT and DELETE",
            """
            BEGIN IMMEDIATE; INSERT INTO flights_archive SELECT * FROM flights WHERE carrier = 'UA';
            DELETE FROM flights WHERE carrier = 'UA'; COMMIT
            """
          ),
        ]
      ),
    ]
  }

  private var exports: [Case] {
    [("export-ndjson", "ndjson", "-json"), ("export-csv", "csv", "-csv")].map {
      name,
      format,
      option in
      Case(
        name: name,
        title: "export of all rows and columns as \(format.uppercased())",
        contenders: [
          batch(
            action: #"{"type": "export", "file": "flights.out", "format": "\#(format)"}"#,
            where: nil
          ),
          Contender(
            name: "sqlite3 \(option)",
            arguments: ["sqlite3", option, "{db}", "SELECT * FROM flights"],
            output: "flights.out"
          ),
        ]
      )
    }
  }

  /// A run whose identifiers are all selected and of whose chunks a few are not done.
  private var resume: Case {
    let job = job(
      action: #"{"type": "update", "set": {"arr_delay": "coalesce(arr_delay, 0) + 1"}}"#,
      where: nil
    )
    return Case(
      name: "resume",
      title: "update of all rows, killed every second and resumed",
      check: "SELECT sum(arr_delay) FROM flights",
      contenders: [
        Contender(
          name: "batch run, killed",
          arguments: [
            "bash", "-c",
            """
            # In the foreground, timeout waits until the run is gone: until then, the next one is refused.
            until timeout --foreground --signal=KILL 1 "$0" run job.json --quiet 2>>errors; do
              status=$?
              [[ $status -eq 137 || $status -eq 124 ]] || exit 1
            done
            """, tools.batch,
          ],
          files: ["job.json": job],
          isOurs: true
        ),
        Contender(
          name: "batch run, not killed",
          arguments: [tools.batch, "run", "{dir}/job.json", "--quiet"],
          files: ["job.json": job]
        ),
      ]
    )
  }

  // MARK: Tables that people have

  private func cases(of table: Table) -> [Case] {
    [
      Case(
        name: "\(table.name)-update",
        title: "\(table.title): update of all rows",
        check: "SELECT sum(n) FROM t",
        contenders: [
          batch(action: #"{"type": "update", "set": {"n": "n + 1"}}"#, where: nil, table: table),
          sql("one UPDATE", "UPDATE t SET n = n + 1", table: table),
        ]
      ),
      Case(
        name: "\(table.name)-delete",
        title: "\(table.title): delete of half of the rows",
        check: "SELECT count(*), sum(n) FROM t",
        contenders: [
          batch(action: #"{"type": "delete"}"#, where: "n < 500", table: table),
          sql("one DELETE", "DELETE FROM t WHERE n < 500", table: table),
        ]
      ),
      Case(
        name: "\(table.name)-csv",
        title: "\(table.title): export of all rows as CSV",
        contenders: [
          batch(
            action: #"{"type": "export", "file": "t.csv", "format": "csv"}"#,
            where: nil,
            table: table
          ),
          Contender(
            name: "sqlite3 -csv",
            arguments: ["sqlite3", "-csv", "{db}", "SELECT * FROM t"],
            table: table,
            output: "t.csv"
          ),
        ]
      ),
    ]
  }

  // MARK: Kinds of contenders

  private func batch(
    _ name: String = "batch run",
    action: String,
    where condition: String?,
    table: Table? = nil
  ) -> Contender {
    let job = job(
      action: action,
      where: condition,
      entity: table == nil ? "flights" : "t"
    )
    return Contender(
      name: name,
      arguments: [tools.batch, "run", "{dir}/job.json", "--quiet"],
      table: table,
      files: ["job.json": job],
      isOurs: name == "batch run"
    )
  }

  private func job(
    action: String,
    where condition: String?,
    entity: String = "flights"
  ) -> String {
    let selection = condition.map { #""where": "\#($0)""# } ?? #""everything": true"#
    return """
      {"version": 1, "name": "benchmark", "database": {"path": "flights.db"},
       "source": {"entity": "\(entity)", \(selection)}, "action": \(action)}
      """
  }

  private func sql(_ name: String, _ statements: String, table: Table? = nil) -> Contender {
    Contender(
      name: name,
      arguments: [
        "sqlite3", "-batch", "-bail", "{db}", "PRAGMA journal_mode = WAL",
        "PRAGMA synchronous = NORMAL; \(statements)",
      ],
      table: table
    )
  }
}
