// Measures work by objects: every flight read, changed, copied or deleted in background contexts.
//
// usage: ContextBenchmark read|update|insert|delete DATABASE CHECKPOINT [WORKERS [undo]]
//        ContextBenchmark upsert DATABASE [COUNT]
//        ContextBenchmark bulk|bulk-update DATABASE COUNT
//        ContextBenchmark load|load-update DATABASE COUNT CHECKPOINT
//
// `insert` creates an object of table `copies` for each flight. `upsert` saves new objects of table
// `places` in one context, a thousand at a time; every second one exists already. The arithmetic of
// `update` is in `twin.h`. Prints the number of objects, and the resident memory before and at its
// peak. `bulk` inserts rows of table `visits` without objects; `bulk-update` updates those that exist.
// `load` and `load-update` do so in a run over a sequence.

import BatchObjects
import FoundationEssentials

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

final class Flight: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Flight.self,
    entity: "Flight",
    table: "flights",
    properties: [
      .attribute("departureDelay", \.departureDelay, column: "dep_delay"),
      .attribute("arrivalDelay", \.arrivalDelay, column: "arr_delay"),
      .attribute("airTime", \.airTime, column: "air_time"),
      .attribute("distance", \.distance),
    ]
  )

  var departureDelay: Int? { self[\.departureDelay] }
  var arrivalDelay: Int? {
    get { self[\.arrivalDelay] }
    set { self[\.arrivalDelay] = newValue }
  }
  var airTime: Int? { self[\.airTime] }
  var distance: Double { self[\.distance] }
}

final class Copy: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Copy.self,
    entity: "Copy",
    table: "copies",
    properties: [
      .attribute("delay", \.delay), .attribute("airTime", \.airTime, column: "air_time"),
      .attribute("distance", \.distance),
    ]
  )

  var delay: Int? {
    get { self[\.delay] }
    set { self[\.delay] = newValue }
  }
  var airTime: Int? {
    get { self[\.airTime] }
    set { self[\.airTime] = newValue }
  }
  var distance: Double {
    get { self[\.distance] }
    set { self[\.distance] = newValue }
  }
}

/// A place, identified by its code.
final class Place: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Place.self,
    entity: "Place",
    table: "places",
    properties: [
      .attribute("code", \.code), .attribute("name", \.name), .attribute("visits", \.visits),
      .attribute("height", \.height), .unique("code"),
    ]
  )

  var code: Int {
    get { self[\.code] }
    set { self[\.code] = newValue }
  }
  var name: String {
    get { self[\.name] }
    set { self[\.name] = newValue }
  }
  var visits: Int {
    get { self[\.visits] }
    set { self[\.visits] = newValue }
  }
  var height: Double {
    get { self[\.height] }
    set { self[\.height] = newValue }
  }
}

/// A visit, identified by a number.
final class Visit: ManagedObject, PersistentModel {
  static let mapping = ModelMapping(
    Visit.self,
    entity: "Visit",
    table: "visits",
    properties: [
      .attribute("number", \.number), .attribute("place", \.place), .attribute("guest", \.guest),
      .attribute("minutes", \.minutes), .attribute("cost", \.cost),
    ]
  )

  var number: Int { self[\.number] }
  var place: String { self[\.place] }
  var guest: String? { self[\.guest] }
  var minutes: Int { self[\.minutes] }
  var cost: Double { self[\.cost] }
}

/// Resident memory of this process in kilobytes: now (`VmRSS`), or at its peak (`VmHWM`).
func memory(_ field: String) -> Int {
  let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
  let line = status.split(separator: "\n").first { $0.hasPrefix(field) }
  return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
}

/// What to do with the flights of a chunk.
let bodies: [String: ChunkBody] = [
  "read": { context, identifiers in
    var sum = 0
    for flight in try context.fetch(identifiers, as: Flight.self) {
      sum += (flight.departureDelay ?? 0) + (flight.airTime ?? 0)
    }
    guard sum != .min else { throw CancellationError() }
  },
  "update": { context, identifiers in
    for flight in try context.fetch(identifiers, as: Flight.self) {
      flight.arrivalDelay =
        (flight.departureDelay ?? 0) + Int(flight.distance) / 10 - (flight.airTime ?? 0)
    }
  },
  "insert": { context, identifiers in
    for flight in try context.fetch(identifiers, as: Flight.self) {
      let copy = Copy()
      context.insert(copy)
      copy.delay = flight.departureDelay
      copy.airTime = flight.airTime
      copy.distance = flight.distance
    }
  },
  "delete": { context, identifiers in
    for flight in try context.fetch(identifiers, as: Flight.self) { context.delete(flight) }
  },
]

@main
enum ContextBenchmark {
  static func main() async throws {
    let arguments = Array(CommandLine.arguments.dropFirst())
    if arguments.count > 1, arguments[0] == "upsert" {
      return try await upsert(arguments[1], arguments.count > 2 ? Int(arguments[2]) ?? 0 : 100_000)
    }
    if arguments.count == 3, arguments[0].hasPrefix("bulk"), let count = Int(arguments[2]) {
      return try await bulk(arguments[1], count, updating: arguments[0] == "bulk-update")
    }
    if arguments.count == 4, arguments[0].hasPrefix("load"), let count = Int(arguments[2]) {
      return try await load(arguments[1], count, arguments[3], updating: arguments[0] != "load")
    }
    guard arguments.count > 2, let body = bodies[arguments[0]] else {
      let actions = "read|update|insert|delete|upsert"
      print("usage: ContextBenchmark \(actions) DATABASE CHECKPOINT [WORKERS [undo]]")
      exit(64)
    }
    var configuration = ModelConfiguration(path: arguments[1])
    configuration.busyTimeout = .seconds(30)
    let types: [any PersistentModel.Type] =
      arguments[0] == "insert" ? [Flight.self, Copy.self] : [Flight.self]
    let container = try await ModelContainer(for: types, configurations: [configuration])
    let before = memory("VmRSS")
    let run = BatchRun(
      container,
      named: "benchmark",
      fetching: FetchDescriptor<Flight>(),
      policy: RunPolicy(
        workers: arguments.count > 3 ? Int(arguments[3]) : 2,
        checkpoint: .init(path: .init(arguments[2]))
      ),
      undo: arguments.count > 4 ? .init() : nil,
      body
    )
    let summary = try await run.run()
    if let failure = summary.failure { throw failure }
    print(
      summary.outcomes.succeeded,
      "in \(summary.elapsedSeconds) s,",
      "\(before) kB before, \(memory("VmHWM")) kB at the peak"
    )
  }

  /// Saves new places, a thousand at a time.
  private static func upsert(_ path: String, _ count: Int) async throws {
    let container = try await ModelContainer(
      for: Place.self,
      configurations: ModelConfiguration(path: path)
    )
    let context = ModelContext(container)
    let before = memory("VmRSS")
    for start in stride(from: 0, to: count, by: 1000) {
      for number in start..<min(start + 1000, count) {
        let place = Place()
        context.insert(place)
        place.code = number
        place.name = "place \(number)"
        place.visits = number % 97
        place.height = Double(number) / 8
      }
      try context.save()
    }
    print(count, "upserts, \(before) kB before, \(memory("VmHWM")) kB at the peak")
  }

  /// Inserts visits without objects.
  private static func bulk(_ path: String, _ count: Int, updating: Bool) async throws {
    let container = try await ModelContainer(
      for: Visit.self,
      configurations: ModelConfiguration(path: path)
    )
    let before = memory("VmRSS")
    var request = BatchInsertRequest<Visit>(0..<count, fill)
    if updating { request.conflict = .update }
    let inserted = try ModelContext(container).execute(request).count ?? 0
    print(inserted, "rows, \(before) kB before, \(memory("VmHWM")) kB at the peak")
  }

  @Sendable
  private static func fill(_ number: Int, _ row: inout BatchInsertRequest<Visit>.Row) {
    row.set(\.number, to: number)
    row.set(\.place, to: "place \(number % 1000)")
    row.set(\.guest, to: number % 7 == 0 ? nil : "guest number \(number)")
    row.set(\.minutes, to: number % 97)
    row.set(\.cost, to: Double(number) / 8)
  }

  /// Loads visits from a sequence.
  private static func load(
    _ path: String,
    _ count: Int,
    _ checkpoint: String,
    updating: Bool
  ) async throws {
    let container = try await ModelContainer(
      for: Visit.self,
      configurations: ModelConfiguration(path: path)
    )
    let before = memory("VmRSS")
    let run = BatchRun(
      container,
      named: "visits",
      loading: Numbers(limit: count),
      into: Visit.self,
      conflict: updating ? .update : .error,
      policy: RunPolicy(checkpoint: .init(path: checkpoint)),
      fill
    )
    let loaded = try await run.run().get().outcomes.succeeded
    print(loaded, "rows, \(before) kB before, \(memory("VmHWM")) kB at the peak")
  }
}

/// The numbers from 0 to below a limit, one after another.
struct Numbers: AsyncSequence, Sendable {
  let limit: Int

  struct Iterator: AsyncIteratorProtocol {
    var next = 0
    let limit: Int

    mutating func next() async -> Int? {
      guard next < limit else { return nil }
      defer { next += 1 }
      return next
    }
  }

  func makeAsyncIterator() -> Iterator { Iterator(limit: limit) }
}
