import BatchIdentifiers
import BatchParquet
import BatchTestSupport
import Foundation
import SystemPackage
import Testing

@testable import BatchRuns

/// The files of a folder, by the writer of an export whose process dies again and again.
@Suite(.timeLimit(.minutes(2))) struct ExportFilesTests {
  /// A line of up to 200 bytes.
  private static func line(_ position: Int) -> [UInt8] {
    Array(repeatElement(Array("row \(position), ".utf8), count: position * 7919 % 20).joined()) + [
      10
    ]
  }

  /// The lines of some positions; each tenth row is gone, and each eleventh fails.
  private static func lines(
    _ positions: Range<Int>,
    _ format: GroupFormat?,
    _ values: [[String?]]
  ) throws -> ExportedLines {
    var lines = ExportedLines()
    for (number, position) in positions.enumerated() {
      if position % 10 == 3 {
        lines.result.passedOver.vanished.insert(number)
      } else if position % 11 == 5 {
        lines.result.failures.append((number, BatchError(.invalidValue, "row \(position)")))
      } else {
        var folder: [UInt8] = []
        for (index, value) in values[position].enumerated() {
          try PartitionFolder.append("c\(index)", value.map { Array($0.utf8) }, to: &folder)
        }
        if !folder.isEmpty { lines.enter(folder, number: number, at: lines.bytes.count) }
        if format == nil {
          lines.bytes += line(position)
        } else {
          let place = TypedRows.beginLine(number, to: &lines.bytes)
          lines.bytes += line(position)
          TypedRows.endLine(place, invalidTexts: 0, in: &lines.bytes)
        }
        lines.result.succeeded += 1
      }
    }
    return lines
  }

  private static func isWritten(_ position: Int) -> Bool {
    position % 10 != 3 && position % 11 != 5
  }

  /// Values that name folders, of which some would lead elsewhere.
  private static let hostile: [String?] = [
    nil, "", ".", "..", "/", "../../x", "a/b", "a=b", "100%", "%2F", "a\0b", "\n", "ü", "日本", "x y",
    "__HIVE_DEFAULT_PARTITION__", "manifest.json", "c0=1", "*", "\\",
    String(repeating: "z", count: 200),
  ]

  /// The values of each row, nearly in order: a row may have got another one since the list was made.
  private static func values(
    _ count: Int,
    _ depth: Int,
    using random: inout SeededGenerator
  ) -> [[String?]] {
    func one() -> [String?] {
      (0..<depth).map { _ in
        Bool.random(using: &random)
          ? hostile.randomElement(using: &random) ?? nil
          : String(Int.random(in: 0...9, using: &random))
      }
    }
    var current = one()
    return (0..<count).map { _ in
      if Int.random(in: 0..<40, using: &random) == 0 { current = one() }
      return Int.random(in: 0..<50, using: &random) == 0 ? one() : current
    }
  }

  @Test(arguments: 0..<120)
  func `the files of a folder are one export however often its process died`(
    seed: UInt64
  ) async throws {
    var random = SeededGenerator(seed: seed)
    let directory = try TemporaryDirectory()
    let compression: TextCompression = seed.isMultiple(of: 3) ? .gzip : .none
    let count = Int.random(in: 0...600, using: &random)
    let depth = Int(seed % 4 / 2) * Int.random(in: 1...2, using: &random)
    let values = Self.values(count, depth, using: &random)
    let folder = ExportFolder(path: FilePath(directory.file("out")), permissions: .ownerReadWrite)
    let form = ExportForm(job: "j", format: "csv", compression: compression)
    let limit = Int.random(in: 300...5_000, using: &random)
    let settings = ExportFiles.Settings(
      form,
      header: compression.header(Array("header\n".utf8)),
      limit: limit,
      isPartitioned: depth > 0
    )
    let run = UUID().uuidString
    var builder = IdentifierListBuilder(storeIdentifier: "store", entityName: "rows")
    for key in 0..<count { builder.append(Int64(key)) }
    let list = builder.finish().packed
    let metadata = RunMetadata(
      run: run,
      job: "j",
      startedAt: "2026-11-29T00:00:00Z",
      fingerprint: "",
      schema: [],
      ledger: .file
    )
    let file = FilePath(directory.file("j.batch"))
    _ = try Checkpoint(creating: file, list: list, metadata: metadata)
    for life in 0... {
      let isLast = life == 6
      let checkpoint = try Checkpoint(reading: file)
      var progress = checkpoint.progress
      if let current = progress.parts?.current {
        #expect(try folder.loss(of: checkpoint.closedParts(), current) == nil, "seed \(seed)")
      }
      let writer = ExportWriter(
        try Self.open(checkpoint, in: folder, settings),
        compression.format,
        done: progress.done,
        failed: try checkpoint.failedIdentifiers(),
        invalidTexts: 0,
        overwrites: false
      )
      func record() async throws {
        let failed = try await writer.makeDurable(
          &progress,
          seen: progress.done,
          knowing: checkpoint.failedAttempts.count
        )
        if let failed { try checkpoint.record(failed) }
        try checkpoint.record(progress)
        progress = progress.repeatable
      }
      var position = progress.done.rows.last?.next ?? 0
      var isDead = false
      while position < count, !isDead {
        let end = min(position + .random(in: 1...60, using: &random), count)
        let positions = position..<end
        _ = try await writer.append(
          Self.lines(positions, compression.format, values),
          at: positions,
          onFailure: .skip(upTo: count)
        )
        position = end
        progress.elapsedSeconds += Double.random(in: 0...2, using: &random)
        if Bool.random(using: &random) { try await record() }
        isDead = !isLast && Int.random(in: 0..<8, using: &random) == 0
      }
      if isDead { continue }
      try await writer.seal()
      try await record()
      if !isLast, Bool.random(using: &random) { continue }
      try await writer.finish(&progress)
      if isLast { break }
    }
    let written = (0..<count).filter(Self.isWritten)
    let json = try JSONSerialization.jsonObject(with: Data(directory.read("out/manifest.json")))
    let manifest = try #require(json as? [String: Any])
    let parts = try #require(manifest["parts"] as? [[String: Any]])
    #expect(manifest["rows"] as? Int == written.count, "seed \(seed)")
    var (names, next, rest) = (Set(["manifest.json"]), 0, written[...])
    for part in parts {
      let name = try #require(part["file"] as? String)
      let content = try directory.read("out/\(name)")
      #expect(
        part["bytes"] as? Int == content.count && part["first"] as? Int == next,
        "seed \(seed)"
      )
      var hash = SHA256()
      hash.add(content)
      #expect(part["sha256"] as? String == hash.finish(), "seed \(seed)")
      next = try #require(part["next"] as? Int)
      let rows = rest.prefix { $0 < next }
      rest = rest.dropFirst(rows.count)
      #expect(part["rows"] as? Int == rows.count, "seed \(seed)")
      #expect(part["firstKey"] as? String == rows.first.map { "\($0)" }, "seed \(seed)")
      #expect(part["lastKey"] as? String == rows.last.map { "\($0)" }, "seed \(seed)")
      names.insert(name)
      let text =
        compression == .none ? content : try CompressedText.read(content, compression.rawValue).text
      #expect(text == Array("header\n".utf8 + rows.flatMap(Self.line)), "seed \(seed)")
      // The folders are those of each row, as others decode them.
      let folders = name.split(separator: "/").dropLast().map(String.init)
      #expect(folders.count == depth && !rows.isEmpty || depth == 0, "seed \(seed)")
      let told = part["partition"] as? [String: Any] ?? [:]
      for row in rows {
        for (index, value) in values[row].enumerated() {
          let parts = folders[index].split(separator: "=", omittingEmptySubsequences: false)
          #expect(parts.count == 2 && parts[0] == "c\(index)", "seed \(seed): \(name)")
          let decoded =
            parts[1] == "__HIVE_DEFAULT_PARTITION__" ? nil : parts[1].removingPercentEncoding
          #expect(
            decoded == value && told["c\(index)"] as? String == value,
            "seed \(seed): \(name)"
          )
        }
      }
    }
    #expect(depth > 0 ? rest.isEmpty : next == count, "seed \(seed)")
    #expect(Set(try directory.files(in: "out")) == names, "seed \(seed)")
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted() == [
        "j.batch", "out",
      ]
    )
  }

  @Test func `a value without a folder fails its row alone`() throws {
    var folder: [UInt8] = []
    let error = #expect(throws: BatchError.self) {
      try PartitionFolder.append("c", Array(repeating: 0x7a, count: 254), to: &folder)
    }
    #expect(error?.isAboutRows == true && error?.message.contains("too long") == true)
  }

  @Test func `a file that somebody has edited is no longer part of the export`() async throws {
    let directory = try TemporaryDirectory()
    let folder = ExportFolder(path: FilePath(directory.file("out")), permissions: .ownerReadWrite)
    try folder.make()
    let form = ExportForm(job: "j", format: "csv", compression: .none)
    let settings = ExportFiles.Settings(form, header: [], limit: 300)
    let writer = ExportWriter(
      try ExportFiles.begin(in: folder, of: .init("run"), settings) { .integer(Int64($0)) },
      nil,
      done: DoneRanges(),
      failed: [],
      invalidTexts: 0,
      overwrites: false
    )
    var progress = RunProgress()
    for start in stride(from: 0, to: 60, by: 10) {
      let positions = start..<start + 10
      _ = try await writer.append(
        Self.lines(positions, nil, Array(repeating: [], count: 60)),
        at: positions,
        onFailure: .skip(upTo: 60)
      )
    }
    _ = try await writer.makeDurable(&progress, seen: progress.done, knowing: nil)
    let parts = try #require(progress.parts)
    let (closed, current) = (parts.closed, try #require(parts.current))
    #expect(closed.count > 1 && folder.loss(of: closed, current) == nil)
    let file = directory.file("out/\(closed[1].file)")
    let bytes = try directory.read("out/\(closed[1].file)")
    // Another time with the same bytes, as of a copy, is no change.
    try FileManager.default.setAttributes([.modificationDate: Date.distantPast], ofItemAtPath: file)
    #expect(folder.loss(of: closed, current) == nil)
    try Data(bytes.dropLast() + [0x21]).write(to: URL(filePath: file))
    #expect(folder.loss(of: closed, current)?.contains("not as it was written") == true)
    await #expect(throws: BatchError.self) { try await writer.finish(&progress) }
    #expect(throws: BatchError.self) {
      var changed = try directory.read("out/\(current.file)")
      changed[0] ^= 1
      try Data(changed).write(to: URL(filePath: directory.file("out/\(current.file)")))
      _ = try ExportFiles.resume(in: folder, of: .init("run"), settings, after: closed, current) {
        .integer(Int64($0))
      }
    }
  }

  private static func open(
    _ checkpoint: Checkpoint,
    in folder: ExportFolder,
    _ settings: ExportFiles.Settings
  ) throws -> sending ExportOutput {
    let owner = ExportFiles.Owner(checkpoint.metadata.run)
    let keys: ExportFiles.Keys = { [list = checkpoint.list] position throws(BatchError) in
      try list.key(at: position)
    }
    guard let current = checkpoint.progress.parts?.current else {
      try folder.make()
      folder.removeParts(ofRun: owner.run, but: [])
      return try ExportFiles.begin(in: folder, of: owner, settings, keys)
    }
    return try ExportFiles.resume(
      in: folder,
      of: owner,
      settings,
      after: checkpoint.closedParts(),
      current,
      keys
    )
  }
}
