#if PostgreSQL
import BatchRuns
import BatchIdentifiers
import BatchPostgres
import BatchSQLite
import BatchTool

/// `batch` with the handler of the transform case, and a command that only fetches identifiers.
///
/// usage: PostgresBenchmark fetch URL, or any command of `batch`
@main
struct PostgresBenchmark {
  static func main() async throws {
    let arguments = CommandLine.arguments
    if arguments.count == 3, arguments[1] == "fetch" {
      try await fetch(from: ServerAddress(url: arguments[2]))
    } else {
      await BatchTool(handlers: ["three": three]).run()
    }
  }

  /// Fetches the identifiers of all flights, as a run with one worker does.
  private static func fetch(from address: ServerAddress) async throws {
    let main = PostgresConnection(label: "bench", address: address)
    let query = try await main.perform { session throws(BatchError) in
      let path = try SearchPath(of: session)
      let table = try session.transaction { () throws(BatchError) in
        try PostgresTable(named: "flights", in: session)
      }
      return try PostgresQuery(table: table, key: table.requireKey(), where: nil, path: path)
    }
    print(try await PostgresFetch(query, from: address, readers: 1).run(store: "bench").count)
    await main.close()
  }

  /// Three columns read, one written, with the arithmetic of the twins.
  private static let three = TransformHandler.rows { columns in
    let delay = try columns.input("dep_delay", as: Int64.self)
    let distance = try columns.input("distance", as: Double.self)
    let airTime = try columns.input("air_time", as: Int64.self)
    let result = try columns.output("arr_delay", as: Int64.self)
    return { row in
      let tenth = Int64(try row[distance] ?? 0) / 10
      row.set(result, to: (try row[delay] ?? 0) + tenth - (try row[airTime] ?? 0))
    }
  }
}
#else
@main
struct PostgresBenchmark {
  static func main() { print("build it with the trait PostgreSQL") }
}
#endif
