// Measures library calls.
//
// usage: LibraryBenchmark identifiers DATABASE TABLE CONDITION READERS
//        LibraryBenchmark objects DATABASE TABLE
//        LibraryBenchmark equality DATABASE
//
// The last prints the microseconds that a fetch of one row of 500,000 takes by an indexed text, UUID and enumeration,
// in a table created by:
//
//   CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT, uuid TEXT, state TEXT);
//   WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 500000)
//   INSERT INTO things SELECT i, 'name ' || i, printf('%08X-0000-4000-8000-%012X', i, i),
//     CASE i WHEN 4711 THEN 'rare' ELSE 'common' END FROM c;
//   CREATE INDEX a ON things (name); CREATE INDEX b ON things (uuid); CREATE INDEX c ON things (state);
//
// The first prints how many identifiers it fetched, the second how many objects it visited, in a fresh context for
// each thousand; both also print the resident memory at the start and at its peak.

import BatchObjects
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

/// A row of the table for `equality`.
final class Thing: ManagedObject, PersistentModel {
  enum State: String, Codable { case common, rare }

  static let mapping = ModelMapping(
    Thing.self,
    entity: "Thing",
    table: "things",
    properties: [
      .attribute("name", \.name), .attribute("uuid", \.uuid),
      .attribute("state", \.state, as: .raw(placeholder: .common)),
    ]
  )

  var name: String { self[\.name] }
  var uuid: UUID { self[\.uuid] }
  var state: State { self[\.state] }
}

/// Prints how long a fetch of one row takes, on average.
func measure(_ what: String, _ predicate: Predicate<Thing>, in container: ModelContainer) throws {
  let context = ModelContext(container)
  let count = 2_000
  let start = ContinuousClock.now
  for _ in 0..<count {
    guard try context.fetch(FetchDescriptor(predicate: predicate)).count == 1 else {
      throw CancellationError()
    }
  }
  let time = start.duration(to: .now) / count
  print("\(what): \(Double(time.components.attoseconds) / 1e12) microseconds")
}

let arguments = Array(CommandLine.arguments.dropFirst())
func refuse() -> Never {
  print("usage: LibraryBenchmark identifiers DATABASE TABLE CONDITION READERS")
  print("       LibraryBenchmark objects DATABASE TABLE")
  print("       LibraryBenchmark equality DATABASE")
  exit(64)
}
if arguments.count == 2, arguments[0] == "equality" {
  let things = try await ModelContainer(
    for: Thing.self,
    configurations: ModelConfiguration(path: arguments[1], isReadOnly: true)
  )
  guard let uuid = UUID(uuidString: "00001267-0000-4000-8000-000000001267") else { refuse() }
  let (rare, uuids) = (Thing.State.rare, [uuid])
  for _ in 0..<2 {
    try measure("text", #Predicate { $0.name == "name 4711" }, in: things)
    try measure("UUID", #Predicate { $0.uuid == uuid }, in: things)
    try measure("list of a UUID", #Predicate { uuids.contains($0.uuid) }, in: things)
    try measure("enumeration", #Predicate { $0.state == rare }, in: things)
  }
  exit(0)
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
