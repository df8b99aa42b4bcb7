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
  private static func lines(_ positions: Range<Int>, _ format: GroupFormat?) -> ExportedLines {
    var lines = ExportedLines()
    for (number, position) in positions.enumerated() {
      if position % 10 == 3 {
        lines.result.passedOver.vanished.insert(number)
      } else if position % 11 == 5 {
        lines.result.failures.append((number, BatchError(.invalidValue, "row \(position)")))
      } else {
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

  @Test(arguments: 0..<90)
  func `the files of a folder are one export however often its process died`(
    seed: UInt64
  ) async throws {
    var random = SeededGenerator(seed: seed)
    let directory = try TemporaryDirectory()
    let compression: TextCompression = seed.isMultiple(of: 3) ? .gzip : .none
    let count = Int.random(in: 0...600, using: &random)
    let folder = ExportFolder(path: FilePath(directory.file("out")), permissions: .ownerReadWrite)
    let form = ExportForm(job: "j", format: "csv", compression: compression)
    let settings = ExportFiles.Settings(
      form,
      header: compression.header(Array("header\n".utf8)),
      isHeaderRepeated: false,
      limit: .random(in: 300...5_000, using: &random)
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
          Self.lines(positions, compression.format),
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
    let json = try JSONSerialization.jsonObject(with: Data(directory.read("out/manifest.json")))
    let manifest = try #require(json as? [String: Any])
    let parts = try #require(manifest["parts"] as? [[String: Any]])
    var (bytes, names, next) = ([UInt8](), Set(["manifest.json"]), 0)
    for part in parts {
      let name = try #require(part["file"] as? String)
      let content = try directory.read("out/\(name)")
      #expect(
        part["bytes"] as? Int == content.count && part["first"] as? Int == next,
        "seed \(seed)"
      )
      next = try #require(part["next"] as? Int)
      let first = try #require(part["first"] as? Int)
      #expect(part["rows"] as? Int == (first..<next).count(where: Self.isWritten), "seed \(seed)")
      names.insert(name)
      bytes += content
    }
    #expect(next == count, "seed \(seed)")
    if compression != .none { bytes = try CompressedText.read(bytes, compression.rawValue).text }
    let expected = "header\n".utf8 + (0..<count).filter(Self.isWritten).flatMap(Self.line)
    #expect(bytes == Array(expected), "seed \(seed)")
    let there = try FileManager.default.contentsOfDirectory(atPath: directory.file("out"))
    #expect(Set(there) == names, "seed \(seed)")
  }

  private static func open(
    _ checkpoint: Checkpoint,
    in folder: ExportFolder,
    _ settings: ExportFiles.Settings
  ) throws -> sending ExportOutput {
    let run = checkpoint.metadata.run
    guard let current = checkpoint.progress.parts?.current else {
      return try ExportFiles.begin(in: folder, ofRun: run, settings)
    }
    return try ExportFiles.resume(
      in: folder,
      ofRun: run,
      settings,
      after: checkpoint.closedParts(),
      current
    )
  }
}
