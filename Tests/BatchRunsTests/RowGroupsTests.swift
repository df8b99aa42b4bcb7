import BatchIdentifiers
import BatchParquet
import BatchTestSupport
import SystemPackage
import Testing

@testable import BatchRuns

/// Files whose rows are in groups, by the writer of an export.
@Suite(.timeLimit(.minutes(2))) struct RowGroupsTests {
  /// Rows of which some are gone, no longer match, or fail, and texts of which some are not UTF-8.
  private struct Rows {
    let count: Int
    let format: GroupFormat
    let kinds: [Int]

    init(_ count: Int, _ format: GroupFormat, _ random: inout SeededGenerator) {
      self.count = count
      self.format = format
      kinds = (0..<count).map { _ in Int.random(in: 0..<12, using: &random) }
    }

    /// What a worker makes of some positions.
    func lines(_ positions: Range<Int>) -> ExportedLines {
      var lines = ExportedLines()
      for (number, position) in positions.enumerated() {
        switch kinds[position] {
        case 0: lines.result.passedOver.vanished.insert(number)
        case 1: lines.result.passedOver.noLongerMatching.insert(number)
        case 2: lines.result.failures.append((number, BatchError(.invalidValue, "row \(position)")))
        default:
          let isInvalid = kinds[position] == 3
          switch format {
          case .parquet:
            let place = TypedRows.begin(number, to: &lines.bytes)
            TypedRows.append(Int64(position), to: &lines.bytes)
            let text = Array("row \(position % 7)".utf8)
            unsafe text.withUnsafeBytes { unsafe TypedRows.append($0, to: &lines.bytes) }
            TypedRows.end(place, invalidTexts: isInvalid ? 1 : 0, in: &lines.bytes)
          case .lines:
            let place = TypedRows.beginLine(number, to: &lines.bytes)
            lines.bytes += line(position)
            TypedRows.endLine(place, invalidTexts: isInvalid ? 1 : 0, in: &lines.bytes)
          }
          lines.invalidTexts += isInvalid ? 1 : 0
          lines.result.succeeded += 1
        }
      }
      return lines
    }

    /// A line of up to 30,000 bytes.
    private func line(_ position: Int) -> [UInt8] {
      Array((String(repeating: "row \(position), ", count: position * 7919 % 3_000) + "\n").utf8)
    }

    /// All lines, in order.
    var text: [UInt8] { kinds.indices.filter { kinds[$0] > 2 }.flatMap(line) }
  }

  private static let parquet = RowGroups.Format(
    columns: [.init(name: "id", type: .int64), .init(name: "text", type: .text)],
    compression: .lz4,
    createdBy: "test",
    rowLimit: 50
  )

  private static func open(
    _ path: FilePath,
    _ partial: FilePath,
    _ format: GroupFormat,
    _ written: ExportWriter.Written?
  ) throws -> sending ExportOutput {
    guard let written else {
      var header: [UInt8] = []
      if case .parquet = format { header = RowGroups.header }
      let file = try ExportFile(
        creating: path,
        partial: partial,
        header: header,
        permissions: .ownerReadWrite
      )
      return ExportOutput(file: file)
    }
    let file = try ExportFile(
      resuming: path,
      partial: partial,
      count: written.byteCount,
      identity: written.identity
    )
    return ExportOutput(file: file)
  }

  /// Writes a file in chunks of random sizes; a process may die after any chunk, or any step of the end.
  private func write(
    _ rows: Rows,
    to path: FilePath,
    _ random: inout SeededGenerator,
    deaths: Int
  ) async throws -> ExportWriter.Written {
    let partial = FilePath(path.string + ".partial")
    var (written, lives): (ExportWriter.Written?, Int) = (nil, deaths)
    while true {
      let writer = ExportWriter(
        try Self.open(path, partial, rows.format, written),
        rows.format,
        done: written?.done ?? DoneRanges(),
        failed: written?.failed ?? [],
        invalidTexts: written?.invalidTexts ?? 0,
        overwrites: false
      )
      lives -= 1
      let dies = lives >= 0
      var isDead = false
      for gap in (written?.done ?? DoneRanges()).remaining(of: rows.count) {
        var first = gap.lowerBound
        while first < gap.upperBound, !isDead {
          let end = min(first + .random(in: 1...90, using: &random), gap.upperBound)
          _ = try await writer.append(
            rows.lines(first..<end),
            at: first..<end,
            onFailure: .skip(upTo: rows.count)
          )
          first = end
          if Bool.random(using: &random) {
            written = try await writer.synchronize()
            #expect(DoneRanges(written?.done.rows ?? []) != nil, "a checkpoint would refuse it")
          }
          isDead = dies && Int.random(in: 0..<20, using: &random) == 0
        }
      }
      if isDead { continue }
      try await writer.seal()
      written = try await writer.synchronize()
      if dies, Bool.random(using: &random) { continue }
      var progress = RunProgress()
      try await writer.finish(&progress)
      if dies { continue }
      return try #require(written)
    }
  }

  @Test(arguments: 0..<120)
  func `a file is the same however often its process died and wherever chunks end`(
    seed: UInt64
  ) async throws {
    var random = SeededGenerator(seed: seed)
    let directory = try TemporaryDirectory()
    let formats: [GroupFormat] = [.parquet(Self.parquet), .lines(.gzip), .lines(.zstd)]
    let format = formats[Int(seed % 3)]
    let rows = Rows(.random(in: 0...400, using: &random), format, &random)
    func file(_ name: String) -> FilePath { FilePath(directory.file(name)) }
    let whole = try await write(rows, to: file("whole"), &random, deaths: 0)
    let pieced = try await write(
      rows,
      to: file("pieced"),
      &random,
      deaths: .random(in: 1...6, using: &random)
    )
    let told: Comment = "seed \(seed)"
    #expect(try directory.read("whole") == directory.read("pieced"), told)
    if case .lines(let compression) = format {
      let read = try CompressedText.read(directory.read("pieced"), compression.rawValue)
      #expect(read.text == rows.text, told)
      #expect(read.frames <= max(1, rows.text.count >> 20 + 1), told)
    }
    for written in [whole, pieced] {
      #expect(written.done.remaining(of: rows.count).isEmpty, told)
      let outcomes = written.done.outcomes
      #expect(outcomes.vanished == rows.kinds.count { $0 == 0 }, told)
      #expect(outcomes.noLongerMatching == rows.kinds.count { $0 == 1 }, told)
      #expect(outcomes.succeeded == rows.kinds.count { $0 > 2 }, told)
      #expect(written.invalidTexts == rows.kinds.count { $0 == 3 }, told)
      #expect(
        written.failed.map(\.position).sorted()
          == rows.kinds.indices.filter { rows.kinds[$0] == 2 },
        told
      )
    }
  }
}
