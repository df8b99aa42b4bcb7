// What library calls cost.
//
// usage: LibraryBenchmark identifiers DATABASE TABLE CONDITION READERS
//        LibraryBenchmark objects DATABASE TABLE
//
// The first prints how many identifiers it fetched, the second how many objects it visited, in a
// fresh context for each thousand; both print the resident memory before, and its peak.

import BatchPipeline
import FoundationEssentials

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Resident memory of this process in kilobytes: now (`VmRSS`), or at its peak (`VmHWM`).
func memory(_ field: String) -> Int {
  let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
  let line = status.split(separator: "\n").first { $0.hasPrefix(field) }
  return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
}

let arguments = Array(CommandLine.arguments.dropFirst())
func refuse() -> Never {
  print("usage: LibraryBenchmark identifiers DATABASE TABLE CONDITION READERS")
  print("       LibraryBenchmark objects DATABASE TABLE")
  exit(64)
}
guard arguments.count > 2 else { refuse() }
let container = try await ModelContainer(
  configurations: ModelConfiguration(path: arguments[1], isReadOnly: arguments[0] == "identifiers")
)
let store = container.stores[0]
let before = memory("VmRSS")
switch (arguments[0], arguments.count) {
case ("identifiers", 5):
  guard let readers = Int(arguments[4]) else { refuse() }
  let request = FetchRequest(entity: arguments[2], where: arguments[3])
  print(try await store.fetchIdentifiers(request, readers: readers).count, terminator: " ")
case ("objects", 3):
  let run = BatchRun(
    container,
    named: "visit",
    fetching: FetchRequest(entity: arguments[2]),
    policy: RunPolicy(workers: 2)
  ) { context, identifiers in
    for object in try context.fetch(identifiers, as: ManagedObject.self) {
      guard !object.isFault else { throw CancellationError() }
    }
  }
  print(try await run.run().outcomes.succeeded, terminator: " ")
default: refuse()
}
print("\(before) kB before, \(memory("VmHWM")) kB at the peak")
