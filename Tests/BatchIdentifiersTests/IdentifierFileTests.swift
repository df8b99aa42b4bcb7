import SystemPackage
import Testing

@testable import BatchIdentifiers

@Suite struct IdentifierFileTests {
  @Test func `an identifier file returns its list, metadata and records`() throws {
    try withTemporaryFolder { folder in
      let path = folder.appending("orders.ids")
      var builder = IdentifierListBuilder(storeIdentifier: "S", entityName: "orders")
      let keys = (0..<20_000).map { Int64($0 * $0 % 7 + $0 * 9) }
      builder.append(contentsOf: keys)
      try IdentifierFile.create(
        at: path,
        list: builder.finish(),
        metadata: Array("{}".utf8),
        overwriting: false
      )
      var log = try IdentifierFileLog(appendingTo: path)
      try log.append(kind: 1, payload: [1, 2, 3])
      try log.append(kind: 2, payload: [])
      let file = try IdentifierFile(opening: path)
      #expect(file.storeIdentifier == "S")
      #expect(file.metadata == Array("{}".utf8))
      #expect(try file.list.integers(in: 0..<keys.count) == keys)
      #expect(try file.records().map(\.kind) == [1, 2])
      #expect(try file.records().map(\.payload) == [[1, 2, 3], []])
      try file.verify()
    }
  }
}

/// Files that are truncated, changed, or of another kind.
@Suite struct DamagedFileTests {
  /// A small file with every part that a file can have, and where its log begins.
  private func makeFile(at path: FilePath) throws -> (bytes: [UInt8], logOffset: Int) {
    var shapes = KeyShapes(seed: 8)
    let parts = ["runs", "tenth", "half", "shuffled", "pattern"].map {
      shapes.keys($0, count: 40)
    }
    try IdentifierFile.create(
      at: path,
      list: makeList(parts.flatMap { $0 }),
      metadata: Array(#"{"job":"backfill"}"#.utf8),
      overwriting: true
    )
    let logOffset = try IdentifierFile(opening: path).byteCount
    var log = try IdentifierFileLog(appendingTo: path)
    try log.append(kind: 1, payload: [1, 2, 3], sync: false)
    try log.append(kind: 2, payload: Array("failed".utf8), sync: false)
    return (try readAll(path), logOffset)
  }

  private func readAll(_ path: FilePath) throws -> [UInt8] {
    let descriptor = try FileDescriptor.open(path, .readOnly)
    defer { try? descriptor.close() }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = try buffer.withUnsafeMutableBytes { try descriptor.read(into: $0) }
      if count == 0 { return bytes }
      bytes += buffer[..<count]
    }
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

  /// What a file says: its list, metadata and records.
  private func contents(_ path: FilePath) throws -> String {
    let file = try IdentifierFile(opening: path)
    try file.verify()
    let keys = try file.list.integers(in: 0..<file.list.count)
    return
      "\(file.entityName) \(file.storeIdentifier) \(keys) \(file.metadata) \(try file.records())"
  }

  @Test func `every flipped bit before the last record is refused`() throws {
    try withTemporaryFolder { folder in
      let path = folder.appending("a.ids")
      let (bytes, logOffset) = try makeFile(at: path)
      for offset in 0..<(logOffset + 19) {
        var changed = bytes
        changed[offset] ^= 1 << UInt8(offset % 8)
        try write(changed, to: path)
        let error = #expect(throws: BatchError.self, "byte \(offset)") { try contents(path) }
        #expect([.damagedFile, .unsupportedVersion].contains(error?.code), "byte \(offset)")
        #expect(error?.place == path.string)
      }
    }
  }

  @Test func `a truncated file is refused or loses only its last records`() throws {
    try withTemporaryFolder { folder in
      let path = folder.appending("a.ids")
      let (bytes, logOffset) = try makeFile(at: path)
      for count in 0..<bytes.count {
        try write(Array(bytes[..<count]), to: path)
        if count < logOffset {
          let error = #expect(throws: BatchError.self, "\(count)") { try contents(path) }
          #expect(error?.code == .damagedFile, "\(count)")
        } else {
          let file = try IdentifierFile(opening: path)
          try file.verify()
          #expect(file.recordCount == (count < logOffset + 19 ? 0 : 1))
          #expect(
            file.tornByteCount == count - (count < logOffset + 19 ? logOffset : logOffset + 19)
          )
        }
      }
    }
  }

  @Test func `a partly written last record counts as not written`() throws {
    try withTemporaryFolder { folder in
      let path = folder.appending("a.ids")
      let (first, _) = try makeFile(at: path)
      do {
        var log = try IdentifierFileLog(appendingTo: path)
        try log.append(kind: 1, payload: (0..<2000).map { UInt8(truncatingIfNeeded: $0) })
      }
      let whole = try readAll(path)
      // A disk writes sectors: any of them may be what was there before, and the file end behind all.
      for sector in first.count / 512...whole.count / 512 {
        for filler: UInt8 in [0, 0xE5] {
          var torn = whole
          let start = max(first.count, sector * 512)
          for offset in start..<min(whole.count, (sector + 1) * 512) { torn[offset] = filler }
          try write(torn, to: path)
          #expect(try IdentifierFile(opening: path).recordCount == 2, "\(sector), \(filler)")
          do {
            var log = try IdentifierFileLog(appendingTo: path)
            try log.append(kind: 5, payload: [5])
          }
          let file = try IdentifierFile(opening: path)
          #expect(try file.records().map(\.kind) == [1, 2, 5])
          #expect(file.tornByteCount == 0)
        }
      }
      // A flipped bit looks the same.
      for offset in first.count..<whole.count {
        var changed = whole
        changed[offset] ^= 1 << UInt8(offset % 8)
        try write(changed, to: path)
        #expect(try IdentifierFile(opening: path).recordCount == 2, "byte \(offset)")
      }
    }
  }

  @Test(.timeLimit(.minutes(20)))
  func `a log of many frames without records is refused quickly`() throws {
    try withTemporaryFolder { folder in
      let path = folder.appending("a.ids")
      var (bytes, logOffset) = try makeFile(at: path)
      bytes.removeSubrange(logOffset...)
      // Each claims 16 KiB of payload that is not there.
      for _ in 0..<(1 << 13) {
        let frame = LogFrame(kind: 1, payload: [UInt8](repeating: 0, count: 1 << 14))
        bytes += frame.encoded(at: bytes.count)
      }
      try write(bytes, to: path)
      let error = #expect(throws: BatchError.self) { try IdentifierFile(opening: path) }
      #expect(error?.code == .damagedFile)
    }
  }

  @Test func `a torn record is cut off by the next record`() throws {
    try withTemporaryFolder { folder in
      let path = folder.appending("a.ids")
      let (bytes, logOffset) = try makeFile(at: path)
      for tail in [Array(bytes[logOffset..<(bytes.count - 1)]), [UInt8](repeating: 0, count: 100)] {
        try write(Array(bytes[..<logOffset]) + tail, to: path)
        let kept = tail[0] == 0 ? 0 : 1
        do {
          var log = try IdentifierFileLog(appendingTo: path)
          #expect(log.recordCount == kept)
          try log.append(kind: 9, payload: [9])
        }
        let file = try IdentifierFile(opening: path)
        #expect(try file.records().last?.payload == [9])
        #expect(file.recordCount == kept + 1)
        #expect(file.tornByteCount == 0)
      }
    }
  }

  @Test func `a file in another format is refused as such`() throws {
    try withTemporaryFolder { folder in
      let path = folder.appending("a.ids")
      #expect(throws: BatchError.self) { try IdentifierFile(opening: path) }
      var error = #expect(throws: BatchError.self) { try IdentifierFile(opening: folder) }
      #expect(error?.code == .fileAccess)
      try write([], to: path)
      error = #expect(throws: BatchError.self) { try IdentifierFile(opening: path) }
      #expect(error?.message == "the file is empty")
      try write(Array("1,2,3\n4,5,6\n".utf8), to: path)
      error = #expect(throws: BatchError.self) { try IdentifierFile(opening: path) }
      #expect(error?.message == "the file is not an identifier file")
      var (bytes, _) = try makeFile(at: path)
      bytes[8] = 2
      try write(bytes, to: path)
      error = #expect(throws: BatchError.self) { try IdentifierFile(opening: path) }
      #expect(error?.code == .unsupportedVersion)
    }
  }

  @Test func `an existing file is replaced only on request`() throws {
    try withTemporaryFolder { folder in
      let path = folder.appending("a.ids")
      try IdentifierFile.create(at: path, list: makeList([1]), overwriting: false)
      #expect(throws: BatchError.self) {
        try IdentifierFile.create(at: path, list: makeList([2]), overwriting: false)
      }
      let file = try IdentifierFile(opening: path)
      #expect(try file.identifier(at: 0).key == .integer(1))
      try IdentifierFile.create(at: path, list: makeList([2]), overwriting: true)
      #expect(try IdentifierFile(opening: path).load()[0].key == .integer(2))
      // A process that has the old file open still reads the old list.
      #expect(try file.identifier(at: 0).key == .integer(1))
      let nowhere = folder.appending("no/such/folder.ids")
      #expect(throws: BatchError.self) {
        try IdentifierFile.create(at: nowhere, list: makeList([1]))
      }
    }
  }

  @Test func `a list in a file can be written to another file`() throws {
    try withTemporaryFolder { folder in
      let (first, second) = (folder.appending("a.ids"), folder.appending("b.ids"))
      let keys = (0..<3000).map { PrimaryKey.text("order-\($0)") }
      try IdentifierFile.create(at: first, list: makeList(encoded: keys))
      try IdentifierFile.create(at: second, list: IdentifierFile(opening: first).list)
      #expect(try Array(IdentifierFile(opening: second).load()).map(\.key) == keys)
      #expect(try readAll(first) == readAll(second))
    }
  }
}
