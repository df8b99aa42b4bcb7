#if PostgreSQL
import BatchEngine
import BatchIdentifiers
import BatchPostgres
import Foundation

/// Runs one of the benchmark jobs on a PostgreSQL server, with the ledger and the leases of a run.
///
/// usage: PostgresBenchmark URL JOB [--where CONDITION] [--workers N] [--chunk N] [--output FILE] [--run UUID]
///
/// JOB is `fetch`, `begin`, `update`, `transform` or `export`; `begin` begins a run, which others join by its UUID.
/// It prints the times as JSON.
@main
struct PostgresBenchmark {
  let address: ServerAddress
  let job: String
  var condition: String?
  var workers = 2
  var chunk = 5_000
  var output: String?
  /// The run to take part in; nil to begin one.
  var joined: String?

  static func main() async {
    do {
      try await PostgresBenchmark(CommandLine.arguments).run()
    } catch {
      FileHandle.standardError.write(Data("PostgresBenchmark: \(error)\n".utf8))
      exit(1)
    }
  }

  init(_ arguments: [String]) throws {
    guard arguments.count > 2 else { throw BatchError(.invalidSQL, "name a URL and a job") }
    address = try ServerAddress(url: arguments[1])
    job = arguments[2]
    var rest = arguments.dropFirst(3)
    while let option = rest.popFirst(), let value = rest.popFirst() {
      switch option {
      case "--where": condition = value
      case "--workers": workers = Int(value) ?? workers
      case "--chunk": chunk = Int(value) ?? chunk
      case "--output": output = value
      case "--run": joined = value
      default: throw BatchError(.invalidSQL, "there is no option \(option)")
      }
    }
  }

  /// The settings that all jobs share.
  struct Aim: Sendable {
    let table: PostgresTable
    let key: PostgresKey
    let path: SearchPath
    let parameters = PostgresParameters()
    let selection: PostgresQuery
    let value: CheckedExpression
  }

  func run() async throws {
    let clock = ContinuousClock()
    let start = clock.now
    let main = PostgresConnection(label: "bench.main", address: address)
    let condition = condition
    let aim = try await main.perform { session throws(BatchError) in
      let path = try SearchPath(of: session)
      let table = try session.transaction { () throws(BatchError) in
        try PostgresTable(named: "flights", in: session)
      }
      let key = try table.requireKey()
      let compiler = PostgresExpressionCompiler(
        session: session,
        table: table,
        parameters: PostgresParameters(),
        path: path
      )
      var checked: CheckedExpression?
      if let condition { checked = try compiler.condition(PostgresExpression(condition)) }
      return Aim(
        table: table,
        key: key,
        path: path,
        selection: try PostgresQuery(table: table, key: key, where: checked, path: path),
        value: try compiler.assignment(
          of: PostgresExpression("coalesce(arr_delay, 0) + 1"),
          to: "arr_delay"
        )
      )
    }
    if let joined { return try await join(joined, aim) }
    let list = try await PostgresFetch(
      aim.selection,
      from: address,
      readers: job == "fetch" ? 1 : workers
    )
    .run(store: "bench")
    var times = ["fetch": start.duration(to: clock.now)]
    switch job {
    case "fetch": break
    case "begin", "update", "transform":
      let begun = clock.now
      let run = UUID().uuidString.lowercased()
      let job = job
      try await main.perform { session throws(BatchError) in
        let tables = try RunTables(of: session)
        try session.transaction { () throws(BatchError) in
          try tables.create(in: session)
          try tables.begin(run, .init(job: job, fingerprint: job), over: list, in: session)
        }
      }
      times["begin"] = begun.duration(to: clock.now)
      if job == "begin" { return print(run) }
      let worked = clock.now
      try await join(run, aim)
      times["work"] = worked.duration(to: clock.now)
    case "export": try await export(aim, list)
    default: throw BatchError(.invalidSQL, "there is no job \(job)")
    }
    await main.close()
    times["all"] = start.duration(to: clock.now)
    let seconds = times.mapValues { $0 / .seconds(1) }
    let data = try JSONSerialization.data(withJSONObject: seconds, options: [.sortedKeys])
    print(String(decoding: data, as: UTF8.self))
  }

  /// Takes part in a run until no span is free.
  private func join(_ run: String, _ aim: Aim) async throws {
    let main = PostgresConnection(label: "bench.host", address: address)
    let tables = try await main.perform { session throws(BatchError) in try RunTables(of: session) }
    let known = Lock<[Int]>([])
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<workers {
        group.addTask { try await work(number, aim, tables, run, known) }
      }
      try await group.waitForAll()
    }
    _ = try await main.perform { session throws(BatchError) in try tables.finish(run, in: session) }
    await main.close()
  }

  /// Does spans until none is free.
  private func work(
    _ number: Int,
    _ aim: Aim,
    _ tables: RunTables,
    _ run: String,
    _ known: Lock<[Int]>
  ) async throws {
    let connection = PostgresConnection(label: "bench.\(number)", address: address)
    let heartbeat = HostHeartbeat(tables, run: run, host: UUID().uuidString.lowercased())
    let claims = SpanClaims(heartbeat, lease: .seconds(60))
    let fence = SpanFence(tables, run: run)
    let limits = ChunkLimits(lock: .seconds(5), statement: .seconds(60), silence: .seconds(60))
    try await connection.perform { session throws(BatchError) in
      try heartbeat.join(name: "bench", process: 1, in: session)
    }
    let update = ChunkTransaction(
      PostgresChange(
        of: aim.table,
        key: aim.key,
        .update([
          try .init(of: aim.value, to: "arr_delay", in: aim.table, key: aim.key)
        ]),
        path: aim.path
      ),
      fence,
      limits: limits
    )
    let transform = ChunkTransaction(
      try PostgresTransform(
        of: aim.table,
        key: aim.key,
        reading: ["dep_delay", "arr_delay", "distance"],
        writing: ["arr_delay"],
        path: aim.path
      ),
      fence,
      limits: limits
    )
    var method = WritingMethod.counting
    while true {
      let own = known.withLock { $0 }
      let answer = try await connection.perform { session throws(BatchError) in
        try claims.claim(knowing: own, in: session)
      }
      guard case .granted(let lease, _) = answer else { break }
      known.withLock { $0.append(lease.positions.lowerBound) }
      let list = try await connection.perform { session throws(BatchError) in
        try tables.list(of: lease.positions, ofRun: run, in: session)
      }
      for first in stride(
        from: lease.positions.lowerBound,
        to: lease.positions.upperBound,
        by: chunk
      ) {
        let positions = first..<min(first + chunk, lease.positions.upperBound)
        let before = method
        let isUpdate = job == "update"
        method = try await connection.perform { session throws(BatchError) in
          var method = before
          let start = lease.positions.lowerBound
          let places = positions.lowerBound - start..<positions.upperBound - start
          let keys = try RowKeys(list.packed, places, key: aim.key)
          if isUpdate {
            _ = try update.run(keys, at: positions, under: lease, by: &method, in: session)
          } else {
            let chunk = try transform.change.prepare(keys, in: session, Self.gain)
            _ = try transform.run(
              chunk,
              at: positions,
              under: lease,
              by: &method,
              in: session,
              computing: Self.gain
            )
          }
          return method
        }
      }
      try await connection.perform { session throws(BatchError) in
        try claims.close(lease, in: session)
      }
    }
    await connection.close()
  }

  @Sendable private static func gain(_ rows: ReadRows) throws(BatchError) -> ComputedRows {
    var values = RowValues(columns: 1)
    for row in 0..<rows.count {
      let dep = rows.values.kind(row, 0) == .null ? 0 : rows.values.integer(row, 0)
      let arr = rows.values.kind(row, 1) == .null ? 0 : rows.values.integer(row, 1)
      let distance = rows.values.real(row, 2)
      values.append(integer: Int64(Double(arr) + Double(dep) * 0.5 + distance / 1000))
      values.endRow()
    }
    return ComputedRows(values)
  }

  /// Writes the lines of chunks in order; the next free worker reads each chunk.
  private func export(_ aim: Aim, _ list: IdentifierList) async throws {
    let export = try PostgresExport(of: aim.table, key: aim.key, as: .csv, path: aim.path)
    guard let output, let file = fopen(output, "w") else {
      throw BatchError(.invalidSQL, "name a file with --output")
    }
    _ = fwrite(export.header, 1, export.header.count, file)
    let connections = (0..<workers).map {
      PostgresConnection(label: "bench.\($0)", address: address)
    }
    var next = 0
    var written = 0
    var ready: [Int: PostgresExport.Lines] = [:]
    let chunk = chunk
    try await withThrowingTaskGroup(of: (Int, Int, PostgresExport.Lines).self) { group in
      func add(_ worker: Int) {
        guard next < list.count else { return }
        let positions = next..<min(next + chunk, list.count)
        next = positions.upperBound
        group.addTask {
          let lines = try await connections[worker].perform { session throws(BatchError) in
            try export.lines(
              for: RowKeys(list.packed, positions, key: aim.key),
              in: session
            )
          }
          return (worker, positions.lowerBound, lines)
        }
      }
      for worker in 0..<workers { add(worker) }
      while let (worker, first, lines) = try await group.next() {
        add(worker)
        ready[first] = lines
        while let lines = ready.removeValue(forKey: written) {
          _ = lines.bytes.withUnsafeBytes { unsafe fwrite($0.baseAddress, 1, $0.count, file) }
          written += lines.count
        }
      }
    }
    fclose(file)
    for connection in connections { await connection.close() }
  }
}
#else
@main
struct PostgresBenchmark {
  static func main() { print("build it with the trait PostgreSQL") }
}
#endif
