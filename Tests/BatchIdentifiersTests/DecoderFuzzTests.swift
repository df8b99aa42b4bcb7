import BatchTestSupport
import FoundationEssentials
import Testing

@testable import BatchIdentifiers

/// Feeds the decoders with unchecked input: none may trap, hang or allocate without bounds.
///
/// Some cases here; `Scripts/fuzz` runs millions. `BATCH_FUZZ_CASES` and
/// `BATCH_FUZZ_SEED` say how many and which.
@Suite struct DecoderFuzzTests {
  static let environment = ProcessInfo.processInfo.environment
  static let caseCount = environment["BATCH_FUZZ_CASES"].flatMap { Int($0) } ?? 1500
  static let seed = environment["BATCH_FUZZ_SEED"].flatMap { UInt64($0) } ?? 1

  /// A block that is whole, to begin with.
  private struct Sample {
    var keyKind: IdentifierList.KeyKind
    var isSorted: Bool
    var bytes: [UInt8]
    var count: Int
    var firstKey: Int64
    var separator: [UInt8]
  }

  private static func samples() throws -> [Sample] {
    var samples: [Sample] = []
    var lists: [IdentifierList] = []
    for (index, name) in KeyShapes.names.enumerated() {
      var shapes = KeyShapes(seed: UInt64(index))
      for count in [20, 300] { lists.append(makeList(shapes.keys(name, count: count))) }
    }
    for name in IdentifierListTests.encodedShapes.keys.sorted() {
      let keys = IdentifierListTests.encodedShapes[name] ?? []
      for count in [3, 40] { lists.append(makeList(encoded: Array(keys.prefix(count)))) }
    }
    for list in lists.map(\.packed) {
      guard case .memory(let blocks) = list.source else { continue }
      for (index, block) in blocks.enumerated() {
        samples.append(
          Sample(
            keyKind: list.header.keyKind,
            isSorted: list.isSorted,
            bytes: Array(block.dropLast(PaddedBytes.padding)),
            count: list.directory.count(ofBlock: index),
            firstKey: list.directory.firstKeys[index],
            separator: list.directory.separators.withBytes(at: index) { [UInt8]($0) }
          )
        )
      }
    }
    return samples
  }

  private static func mutate(_ bytes: inout [UInt8], _ generator: inout SeededGenerator) {
    for _ in 0..<Int.random(in: 1...4, using: &generator) {
      let offset = bytes.isEmpty ? 0 : Int.random(in: 0..<bytes.count, using: &generator)
      switch Int.random(in: 0..<8, using: &generator) {
      case 0 where !bytes.isEmpty: bytes[offset] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
      case 1 where !bytes.isEmpty: bytes[offset] = UInt8.random(in: 0...255, using: &generator)
      case 2 where !bytes.isEmpty: bytes[offset] = [0, 0x7F, 0x80, 0xFF][offset % 4]
      case 3: bytes.insert(UInt8.random(in: 0...255, using: &generator), at: offset)
      case 4 where !bytes.isEmpty: bytes.remove(at: offset)
      case 5: bytes.removeLast(bytes.count - offset)
      case 6 where bytes.count > 8:
        // The table is where a change does most.
        bytes[Int.random(in: 0..<8, using: &generator)] = UInt8.random(
          in: 0...255,
          using: &generator
        )
      default: bytes.append(contentsOf: bytes.prefix(offset))
      }
    }
  }

  /// A list of one block, as if its checksum had matched.
  private static func list(
    _ sample: Sample,
    _ generator: inout SeededGenerator
  ) -> PackedIdentifiers {
    var directory = BlockDirectory()
    // Mostly counts that fit, otherwise anything that a directory may contain.
    let count =
      Int.random(in: 0..<4, using: &generator) > 0
      ? sample.count : Int.random(in: 1...(1 << 20), using: &generator)
    directory.append(
      byteCount: sample.bytes.count,
      count: count,
      firstKey: Int.random(in: 0..<4, using: &generator) > 0
        ? sample.firstKey : Int64.random(in: .min ... .max, using: &generator),
      separator: sample.separator,
      checksum: 0
    )
    return PackedIdentifiers(
      header: IdentifierList.Header(
        storeIdentifier: "S",
        entityName: "orders",
        keyKind: sample.keyKind
      ),
      isSorted: sample.isSorted,
      directory: directory,
      source: .memory([sample.bytes + [UInt8](repeating: 0xA5, count: PaddedBytes.padding)])
    )
  }

  /// Reads a list in every way; errors are fine.
  private static func exercise(_ list: PackedIdentifiers, _ generator: inout SeededGenerator) {
    let start = Int.random(in: 0..<list.count, using: &generator)
    let range = start..<min(list.count, start + Int.random(in: 0...300, using: &generator))
    try? list.verify()
    _ = try? list.encodedKeys(in: range)
    _ = try? list.key(at: start)
    let key: PrimaryKey =
      list.header.keyKind == .integer
      ? .integer(Int64.random(in: .min ... .max, using: &generator)) : .text("order-5")
    _ = try? list.firstPosition(of: key)
    if list.header.keyKind == .integer, let near = list.directory.firstKeys.first {
      _ = try? list.firstPosition(of: .integer(near &+ Int64(start)))
    }
  }

  @Test func `damaged blocks are refused or read without a trap`() throws {
    let samples = try Self.samples()
    var generator = SeededGenerator(seed: Self.seed)
    var refused = 0
    for _ in 0..<Self.caseCount {
      guard var sample = samples.randomElement(using: &generator) else { return }
      Self.mutate(&sample.bytes, &generator)
      guard !sample.bytes.isEmpty else { continue }
      let list = Self.list(sample, &generator)
      Self.exercise(list, &generator)
      do { try list.verify() } catch {
        refused += 1
        continue
      }
      // What was checked as a whole can be read from end to end.
      let start = Int.random(in: 0..<list.count, using: &generator)
      _ = try list.encodedKeys(in: 0..<min(list.count, 300))
      _ = try list.encodedKeys(in: start..<min(list.count, start + 300))
      _ = try list.key(at: list.count - 1)
    }
    print("fuzz: \(Self.caseCount) blocks from seed \(Self.seed), \(refused) refused")
    #expect(refused > 0)
  }

  @Test func `damaged headers, directories and frames are refused or read without a trap`() throws {
    var generator = SeededGenerator(seed: Self.seed &+ 1)
    var shapes = KeyShapes(seed: 2)
    let list = makeList(shapes.keys("mixed", count: 6000)).packed
    let text = makeList(encoded: (0..<1500).map { .text("order-\($0)") }).packed
    let directories = [list, text].map { ($0, $0.directory.encoded($0.header.keyKind)) }
    for _ in 0..<(Self.caseCount / 4) {
      let (list, whole) = directories[Int.random(in: 0..<2, using: &generator)]
      var directory = whole
      let layout = FileLayout(list: list, metadata: [], directory: whole)
      var header = Array(layout.encoded().dropFirst(FileLayout.preambleByteCount))
      Self.mutate(&header, &generator)
      Self.mutate(&directory, &generator)
      _ = try? FileLayout(header: header.span)
      _ = try? BlockDirectory(
        decoding: directory.span,
        keyKind: list.header.keyKind,
        blockCount: list.blockCount,
        count: list.count,
        byteCount: list.encodedByteCount
      )
      var frame = LogFrame(kind: 3, payload: directory).encoded(at: 77)
      Self.mutate(&frame, &generator)
      _ = LogFrame(frame.span, at: 77)
    }
  }

  @Test func `malformed identifiers are refused or survive a round trip`() throws {
    var generator = SeededGenerator(seed: Self.seed &+ 2)
    let store = "6E5D1507-3E60-41F0-A5F7-C1F28DC63F40"
    let texts = [
      "x-coredata://\(store)/order%20lines/p28", "x-coredata:///Item/t\(store)2",
      "x-swiftdata://Item/\(store)", "x-developer-provided://store/Item/key%20with/slash",
      "x-coredata://\(store)/Item/p=EU,28,~00ff,*2.5,!", "x-coredata://S/Item/pkey%20with/slash",
    ].map { [UInt8]($0.utf8) }
    for _ in 0..<Self.caseCount {
      guard var bytes = texts.randomElement(using: &generator) else { return }
      Self.mutate(&bytes, &generator)
      guard let id = PersistentIdentifier(uriBytes: bytes.span) else { continue }
      let again = try #require(PersistentIdentifier(uriString: id.uriString))
      #expect(again == id, "\(id)")
      if let key = id.key { #expect(again.key == key) }
    }
  }
}
