import BatchObjects
import SystemPackage

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Adds one to `n` of every row of `numbers`, or of those that a condition finds, by objects: what a
/// service does that calls the library.
///
///     CrashingContexts DATABASE CHECKPOINT [CONDITION [SIZE]]
///
/// With a size of chunks it can be undone, and each chunk also deletes some rows and inserts others.
///
/// With `load LIMIT` for a condition it is a load of records: see ``LoadedRecords``.
///
/// It says nothing, so that nothing comes behind the call's return: when it has ended with 0, the
/// call has returned. With a job file it is like `batch run`: see ``ObjectsOfJob``.
@main
enum CrashingContexts {
  static func main() async {
    if CommandLine.arguments.count > 2, CommandLine.arguments[2].hasSuffix(".json") {
      await ObjectsOfJob.main()
    }
    do {
      if CommandLine.arguments.dropFirst(3).first == "load" {
        let summary = try await LoadedRecords.run(CommandLine.arguments)
        if let failure = summary.failure { throw failure }
        return
      }
      let database = CommandLine.arguments[1]
      let condition = CommandLine.arguments.count > 3 ? CommandLine.arguments[3] : nil
      let size = CommandLine.arguments.count > 4 ? Int(CommandLine.arguments[4]) : nil
      let container = try await ModelContainer(configurations: ModelConfiguration(path: database))
      let run = BatchRun(
        container,
        named: "numbers",
        fetching: FetchRequest(entity: "numbers", where: condition),
        policy: RunPolicy(
          chunk: .init(size: size ?? (condition == nil ? 5 : 500)),
          workers: 2,
          checkpoint: .init(path: FilePath(CommandLine.arguments[2]))
        ),
        undo: size.map { _ in Job.Undo() }
      ) { context, identifiers in
        for number in try context.fetch(identifiers, as: ManagedObject.self) {
          if case .integer(let n) = number["n"] { number["n"] = .integer(n + 1) }
        }
        if size != nil, case .integer(let first)? = identifiers.first?.key {
          let last = first + Int64(identifiers.count) - 1
          for sql in [
            "DELETE FROM numbers WHERE id % 10 = 3 AND id BETWEEN ? AND ?",
            "INSERT INTO log (first, last) VALUES (?, ?)",
          ] { try context.executeOnSave(sql, .integer(first), .integer(last)) }
        }
      }
      let summary = try await run.run()
      if let failure = summary.failure { throw failure }
    } catch {
      let message = "error: \(error)\n"
      _ = message.withCString { write(STDERR_FILENO, $0, strlen($0)) }
      exit(1)
    }
  }
}
