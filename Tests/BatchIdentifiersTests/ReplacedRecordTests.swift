import BatchTestSupport
import SystemPackage
import Testing

@testable import BatchIdentifiers

/// Records that replace the last one, so that a log does not grow with time.
@Suite struct ReplacedRecordTests {
  private func create(at path: FilePath) throws {
    var builder = IdentifierListBuilder(storeIdentifier: "S", entityName: "orders")
    builder.append(contentsOf: (0..<100).map { Int64($0 * 3) })
    try IdentifierFile.create(at: path, list: builder.finish(), metadata: [], overwriting: true)
  }

  private func bytes(of path: FilePath) throws -> [UInt8] {
    let descriptor = try FileDescriptor.open(path, .readOnly)
    defer { try? descriptor.close() }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while case let count = try buffer.withUnsafeMutableBytes({ try descriptor.read(into: $0) }),
      count > 0
    {
      bytes += buffer[..<count]
    }
    return bytes
  }

  private func write(_ bytes: [UInt8], to path: FilePath) throws {
    let descriptor = try FileDescriptor.open(
      path,
      .writeOnly,
      options: [.create, .truncate],
      permissions: .ownerReadWrite
    )
    defer { try? descriptor.close() }
    try descriptor.writeAll(bytes)
  }

  private func payload(using generator: inout SeededGenerator) -> [UInt8] {
    let count = Int.random(in: 0...90, using: &generator)
    return (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
  }

  @Test(arguments: 1...UInt64(20))
  func `a log holds what was appended and what last replaced each record`(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    try withTemporaryFolder { folder in
      let path = folder.appending("x.batch")
      try create(at: path)
      var expected: [[UInt8]] = []
      for _ in 0..<4 {
        var log = try IdentifierFileLog(appendingTo: path)
        // A log replaces no record of an earlier process.
        var isOwn = false
        for _ in 0..<Int.random(in: 1...12, using: &generator) {
          let payload = payload(using: &generator)
          let replaces = Bool.random(using: &generator)
          if replaces, isOwn { expected.removeLast() }
          expected.append(payload)
          isOwn = true
          try log.append(
            kind: 1,
            payload: payload,
            replacingLast: replaces,
            sync: Bool.random(using: &generator)
          )
          #expect(log.recordCount == expected.count)
          let file = try IdentifierFile(opening: path)
          #expect(try file.records().map(\.payload) == expected)
        }
      }
      try IdentifierFile(opening: path).verify()
    }
  }

  @Test(arguments: 1...UInt64(12))
  func `a crash at any byte of a replacement leaves the earlier records, and a log to append to`(
    seed: UInt64
  ) throws {
    var generator = SeededGenerator(seed: seed)
    try withTemporaryFolder { folder in
      let path = folder.appending("x.batch")
      try create(at: path)
      let kept = [payload(using: &generator), payload(using: &generator)]
      let (old, new) = (payload(using: &generator), payload(using: &generator))
      do {
        var log = try IdentifierFileLog(appendingTo: path)
        for payload in kept + [old] { try log.append(kind: 1, payload: payload) }
      }
      let before = try bytes(of: path)
      let start = try end(of: kept, at: path)
      let frame = try replacement(new, of: old, after: kept, in: folder, from: start)
      for length in 0...frame.count {
        var torn = Array(before[..<start]) + frame[..<length]
        if torn.count < before.count { torn += before[torn.count...] }
        try write(torn, to: path)
        let records = try IdentifierFile(opening: path).records().map(\.payload)
        #expect([kept, kept + [old], kept + [new]].contains(records), "\(seed), byte \(length)")
        if length == frame.count { #expect(records == kept + [new]) }
        var log = try IdentifierFileLog(appendingTo: path)
        try log.append(kind: 1, payload: [7])
        let more = try IdentifierFile(opening: path).records().map(\.payload)
        #expect(more == records + [[7]], "\(seed), byte \(length)")
      }
    }
  }

  /// Where a file with these records ends.
  private func end(of records: [[UInt8]], at path: FilePath) throws -> Int {
    try create(at: path)
    do {
      var log = try IdentifierFileLog(appendingTo: path)
      for payload in records { try log.append(kind: 1, payload: payload) }
    }
    return try bytes(of: path).count
  }

  /// The bytes of a record at that place.
  private func replacement(
    _ new: [UInt8],
    of old: [UInt8],
    after kept: [[UInt8]],
    in folder: FilePath,
    from start: Int
  ) throws -> [UInt8] {
    let path = folder.appending("y.batch")
    try create(at: path)
    do {
      var log = try IdentifierFileLog(appendingTo: path)
      for payload in kept + [old] { try log.append(kind: 1, payload: payload) }
      try log.append(kind: 1, payload: new, replacingLast: true)
    }
    return Array(try bytes(of: path)[start...])
  }
}
