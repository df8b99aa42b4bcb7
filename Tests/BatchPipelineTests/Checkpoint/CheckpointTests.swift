import BatchRuns
import BatchIdentifiers
import BatchPipeline
import BatchSQLite
import BatchTestSupport
import Foundation
import SystemPackage
import Testing

@Suite struct CheckpointTests {
  let directory: TemporaryDirectory
  let path: FilePath
  let list: IdentifierList
  let metadata: RunMetadata

  init() throws {
    metadata = try JSONDecoder().decode(
      RunMetadata.self,
      from: Data(
        """
        {
          "version": 1, "run": "R", "job": "job", "startedAt": "2026-11-21T00:00:00Z",
          "startedMicroseconds": 0, "fingerprint": "{}", "schema": ["key id"], "ledger": "store", "replacesOwnOutput": false
        }
        """.utf8
      )
    )
    directory = try TemporaryDirectory()
    path = FilePath(directory.file("job.batch"))
    var builder = IdentifierListBuilder(storeIdentifier: "S", entityName: "numbers")
    for key in 1...100 as ClosedRange<Int64> { builder.append(key) }
    list = builder.finish()
  }

  private func progress(_ done: Int, _ state: RunState = .running) throws -> RunProgress {
    let text = """
      {
        "state": "\(state.rawValue)", "elapsedSeconds": 1.5, "selectionSeconds": 0, "resumedAt": 0,
        "peakResidentBytes": 1, "peakWALBytes": 2, "done": {
          "rows": [
            {
              "first": 0, "next": \(done), "chunks": 1,
              "outcomes": {
                "succeeded": \(done), "unchanged": 0, "vanished": 0, "noLongerMatching": 0,
                "failed": 0
              }
            }
          ]
        }
      }
      """
    return try JSONDecoder().decode(RunProgress.self, from: Data(text.utf8))
  }

  private func failed(_ positions: some Sequence<Int>) throws -> [FailedIdentifier] {
    let objects = positions.map { position in
      """
      {
        "position": \(position), "code": "constraint", "message": "no \(position)", "attempt": 1,
        "failedAt": "2026-11-21T00:00:00Z"
      }
      """
    }
    let text = "[\(objects.joined(separator: ","))]"
    return try JSONDecoder().decode([FailedIdentifier].self, from: Data(text.utf8))
  }

  @Test func `a checkpoint adds failed identifiers, and removes those that have succeeded since`()
    throws
  {
    do {
      let checkpoint = try Checkpoint(creating: path, list: list.packed, metadata: metadata)
      try checkpoint.record(failed([]))
      #expect(try IdentifierFile(opening: path).recordCount == 0)
      try checkpoint.record(failed([3, 70]))
      try checkpoint.record(failed([3, 50, 70]))
      // Known ones are not written again.
      try checkpoint.record(failed([3, 50, 70]))
    }
    #expect(try IdentifierFile(opening: path).recordCount == 2)
    #expect(try Checkpoint(reading: path).failedAttempts.keys.sorted() == [3, 50, 70])
    let inspection = try FileInspection(of: path)
    #expect(inspection.run?.failed.map(\.failure.message) == ["no 3", "no 50", "no 70"])
    #expect(inspection.run?.failed.map(\.identifier.key) == [4, 51, 71].map { .integer($0) })

    let resumed = try Checkpoint(reading: path)
    try resumed.record(failed([50, 99]))
    #expect(resumed.failedAttempts.keys.sorted() == [50, 99])
    #expect(try Checkpoint(reading: path).failedAttempts.keys.sorted() == [50, 99])
    try resumed.record(failed([]))
    #expect(try Checkpoint(reading: path).failedAttempts.isEmpty)
  }

  @Test func `a checkpoint keeps more failed identifiers than one record holds`() throws {
    var builder = IdentifierListBuilder(storeIdentifier: "S", entityName: "numbers")
    for key in 1...5000 as ClosedRange<Int64> { builder.append(key) }
    let list = builder.finish().packed
    let checkpoint = try Checkpoint(creating: path, list: list, metadata: metadata)
    try checkpoint.record(failed(0..<1))
    try checkpoint.record(failed(0..<2501))
    #expect(try Checkpoint(reading: path).failedAttempts.keys.sorted() == Array(0..<2501))
    try checkpoint.record(failed(2000..<5000))
    #expect(try Checkpoint(reading: path).failedAttempts.keys.sorted() == Array(2000..<5000))
  }

  @Test func `a checkpoint grows with what changes among the failed identifiers`() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    print("seed \(seed)")
    var random = SeededGenerator(seed: seed)
    var builder = IdentifierListBuilder(storeIdentifier: "S", entityName: "numbers")
    for key in 1...5000 as ClosedRange<Int64> { builder.append(key) }
    var checkpoint = try Checkpoint(
      creating: path,
      list: builder.finish().packed,
      metadata: metadata
    )
    func size() throws -> Int { try Data(contentsOf: URL(fileURLWithPath: path.string)).count }
    let start = try size()
    var current = Set<Int>()
    var changes = 0
    for step in 0..<300 {
      let few = (0..<Int.random(in: 0...8, using: &random)).map { _ in
        Int.random(in: 0..<5000, using: &random)
      }
      // Many at once, and none, come as well.
      let next: Set<Int> =
        switch Int.random(in: 0..<40, using: &random) {
        case 0: []
        case 1: Set((0..<5000).shuffled(using: &random).prefix(3000))
        default: current.symmetricDifference(few)
        }
      changes += next.symmetricDifference(current).count
      current = next
      try checkpoint.record(failed(current.sorted()))
      if step.isMultiple(of: 50) { checkpoint = try Checkpoint(reading: path) }
      #expect(checkpoint.failedAttempts.keys.sorted() == current.sorted())
    }
    let read = try IdentifierFile(opening: path).failedIdentifiers()
    #expect(read.map(\.position) == current.sorted())
    let growth = try size() - start
    #expect(growth <= 300 * 64 + changes * 150, "\(growth) for \(changes)")
  }

  @Test(arguments: [
    #"{"failed":[{"position":100,"code":"","message":"","attempt":1,"failedAt":""}]}"#,
    #"{"failed":[{"position":-1,"code":"","message":"","attempt":1,"failedAt":""}]}"#,
    #"{"corrected":[1]}"#, "", "[]",
  ])
  func `an inconsistent record of failures is refused`(payload: String) throws {
    _ = try Checkpoint(creating: path, list: list.packed, metadata: metadata)
    var log = try IdentifierFileLog(appendingTo: path)
    try log.append(kind: 2, payload: Array(payload.utf8))
    let error = #expect(throws: BatchError.self) { try Checkpoint(reading: path) }
    #expect(error?.code == .damagedFile)
    #expect(throws: BatchError.self) { try FileInspection(of: path) }
  }

  @Test func `the last record of a checkpoint counts`() throws {
    let checkpoint = try Checkpoint(creating: path, list: list.packed, metadata: metadata)
    #expect(checkpoint.progress.done.count == 0)
    #expect(checkpoint.progress.state == .running)
    for done in [10, 20, 35] {
      try checkpoint.record(progress(done))
      #expect(checkpoint.progress.done.count == done)
      #expect(try Checkpoint(reading: path).progress.done.count == done)
    }
    try checkpoint.record(progress(100, .completed))
    let read = try Checkpoint(reading: path)
    #expect(read.progress.state == .completed)
    #expect(read.metadata.run == "R" && read.metadata.job == "job")
    #expect(read.metadata.ledger == .store)
    #expect(try read.list.integers(in: 0..<100) == Array(1...100))
    let inspection = try FileInspection(of: path)
    // Records of the same time replace one another while the run goes on.
    #expect(inspection.records == 2 && inspection.count == 100 && inspection.tornBytes == 0)
    #expect(inspection.run?.done == 100 && inspection.run?.state == "completed")
  }

  @Test(arguments: [false, true])
  func `the records of a week take less than a megabyte, and say all that happened`(
    passesOver: Bool
  ) throws {
    let checkpoint = try Checkpoint(creating: path, list: list.packed, metadata: metadata)
    let start = try FileInspection(of: path).fileBytes
    var generator = SeededGenerator(seed: 7)
    var passedOver = RangeSet<Int>()
    var progress = RunProgress()
    let week = 7 * 24 * 3_600.0
    var done = 0
    while progress.elapsedSeconds < week {
      progress.elapsedSeconds += 5
      let next = Int(progress.elapsedSeconds / week * 90)
      progress.passedOver = nil
      if passesOver, next > done, Bool.random(using: &generator) {
        var chunk = PassedOver()
        chunk.vanished.insert(contentsOf: 0..<(next - done))
        progress.passedOver = PassedOverRecord()
        progress.passedOver?.append(chunk, from: done)
        passedOver.insert(contentsOf: done..<next)
      }
      done = next
      progress.done =
        DoneRanges([.init(0..<max(done, 1), outcomes: Outcomes(), chunks: 1)]) ?? .init()
      // A hold is another state, and goes on.
      progress.state = Int(progress.elapsedSeconds) % 1_000 < 100 ? .throttled : .running
      try checkpoint.record(progress)
      if Int(progress.elapsedSeconds) % 50_000 == 0 {
        let read = try Checkpoint(reading: path)
        #expect(read.progress.elapsedSeconds == progress.elapsedSeconds)
        #expect(try Array(read.passedOver().vanished.ranges) == Array(passedOver.ranges))
      }
    }
    progress.state = .completed
    try checkpoint.record(progress)
    let read = try Checkpoint(reading: path)
    #expect(read.progress.state == .completed)
    #expect(try Array(read.passedOver().vanished.ranges) == Array(passedOver.ranges))
    #expect(try FileInspection(of: path).fileBytes - start < 1_000_000)
    // The chart still covers all of it, from the first seconds on.
    let points = try read.pace().points
    #expect(points.count > 100 && points.first?.seconds ?? .infinity < 600)
    #expect(zip(points, points.dropFirst()).allSatisfy { $1.seconds - $0.seconds < week / 20 })
    #expect(points.last?.seconds == progress.elapsedSeconds)
  }

  @Test func `a truncated record is dropped, and the next one is appended`() throws {
    let whole: [UInt8]
    do {
      let checkpoint = try Checkpoint(creating: path, list: list.packed, metadata: metadata)
      try checkpoint.record(progress(10))
      whole = try directory.read("job.batch")
      try checkpoint.record(progress(20))
      // One process adds records at a time.
      let other = try Checkpoint(reading: path)
      let refusal = #expect(throws: BatchError.self) { try other.record(progress(30)) }
      #expect(refusal?.code == .alreadyRunning)
    }
    let longer = try directory.read("job.batch")
    for length in whole.count..<longer.count {
      try Data(longer.prefix(length)).write(to: URL(fileURLWithPath: path.string))
      let read = try Checkpoint(reading: path)
      #expect(read.progress.done.count == 10)
      try read.record(progress(30))
      #expect(try Checkpoint(reading: path).progress.done.count == 30)
    }
  }

  #if os(Linux)
  @Test func `a closed checkpoint is free even while a program is starting`() throws {
    var copy: Int32 = -1
    do {
      let checkpoint = try Checkpoint(creating: path, list: list.packed, metadata: metadata)
      try checkpoint.record(progress(10))
      // The copy of the descriptor that a child process has until it executes its program.
      for name in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
        let target = try? FileManager.default.destinationOfSymbolicLink(
          atPath: "/proc/self/fd/\(name)"
        )
        if let target, target == path.string, let descriptor = Int32(name) {
          copy = dup(descriptor)
        }
      }
    }
    #expect(copy >= 0)
    defer { close(copy) }
    try Checkpoint(reading: path).record(progress(20))
    #expect(try Checkpoint(reading: path).progress.done.count == 20)
  }
  #endif

  @Test func `a checkpoint record that contradicts itself is refused`() throws {
    let checkpoint = try Checkpoint(creating: path, list: list.packed, metadata: metadata)
    try checkpoint.record(progress(101))
    let error = #expect(throws: BatchError.self) { try Checkpoint(reading: path) }
    #expect(error?.code == .damagedFile)
  }

  @Test func `an identifier list is refused as a checkpoint`() throws {
    try IdentifierFile.create(at: path, list: list)
    let before = try directory.read("job.batch")
    let error = #expect(throws: BatchError.self) { try Checkpoint(reading: path) }
    #expect(error?.code == .damagedFile)
    #expect(error?.message == "this is a list of identifiers, not the checkpoint of a run")
    #expect(try directory.read("job.batch") == before)
  }

  @Test func `a checkpoint is set aside under the first free name, replacing nothing`() throws {
    for number in 1...3 {
      _ = try Checkpoint(creating: path, list: list.packed, metadata: metadata)
      #expect(try Checkpoint.setAside(path).lastComponent?.string == "job.\(number).batch")
    }
    try FileManager.default.removeItem(atPath: directory.file("job.2.batch"))
    try directory.write("mine", to: "job.4.batch")
    for name in ["job.2.batch", "job.5.batch"] {
      _ = try Checkpoint(creating: path, list: list.packed, metadata: metadata)
      #expect(try Checkpoint.setAside(path).lastComponent?.string == name)
    }
    #expect(try directory.read("job.4.batch") == Array("mine".utf8))
    #expect(try !directory.names().contains("job.batch"))
  }

  @Test func `a checkpoint is set aside even if its name has no extension or several dots`() throws
  {
    for (name, aside) in [("state", "state.1.batch"), ("a.b.c", "a.b.1.c")] {
      let path = FilePath(directory.file(name))
      _ = try Checkpoint(creating: path, list: list.packed, metadata: metadata)
      #expect(try Checkpoint.setAside(path).lastComponent?.string == aside)
    }
  }
}
