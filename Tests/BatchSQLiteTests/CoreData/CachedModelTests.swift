import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Testing

@testable import BatchSQLite

/// The readers of Core Data's cached model, given arbitrary bytes.
@Suite struct CachedModelTests {
  private func unpack(_ hexadecimal: String, atMost limit: Int = 10_000) throws -> [UInt8] {
    try Inflation.unpack(Self.bytes(hexadecimal), atMost: limit)
  }

  private static func bytes(_ hexadecimal: String) -> [UInt8] {
    let digits = Array(hexadecimal.utf8).map { $0 < 58 ? $0 - 48 : $0 - 87 }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }

  private static let text = "to be or not to be, that is the question: to be or not to be"
  /// As zlib packs the text: stored, with the fixed code, and a longer one with a dynamic code.
  private static let stored = """
    013c00c3ff746f206265206f72206e6f7420746f2062652c207468617420697320746865207175657374\
    696f6e3a20746f206265206f72206e6f7420746f206265
    """
  private static let fixed = """
    2bc957484a55c82f52c8cb2f5128017174144a32124b14328b8174aa4261696a7149667e9e1544124525\
    00
    """
  private static let dynamic = """
    6360606064626665e7e4e6131491905150d1d433b6b477f50e8a4cc828a868e89c347be9fa9d87cfdd7c\
    f281915752cdd8c12f26aba27ddad2ad47af3efdc623abef189c5ad13d6fd3b15bef38648d3ce24aba16\
    ee38ff9c45c6c437ad7ee6e6b3cfd9956c234b27ae3df59c53dd35b971c1fe7bcccacec92d4b8fbde037\
    0c2e9bb9e701a76e60d9ec03cf04cd635b565ffaa5ee5fbee0e42745efd2f9a7beaa06d6aebcca6e92d8\
    bff7b59c6fcdeadb020e050b2f7158e5ccbbc0619db7e81abf73c5da47b2c19dfbbf19652ebc29e6d77e\
    e0a745d19a676a89736e48864e3c27e0db7d92c7abf3048f4fcf19c1a0c957a463e73fd4cc59ffd9a6e1\
    085ff08c7b9af95b193dfaafabe46c61f29e724fb7fca060ccf2cf2e13eee8559f90cedcce15b9e2bbcf\
    9c378e931e5b76df3569bb69d872c3b0f5a671c75d86d1b0223aac1247c128a0010000
    """

  @Test func `a cached model unpacks stored, fixed and dynamic blocks`() throws {
    #expect(try String(decoding: unpack(Self.stored), as: UTF8.self) == Self.text)
    #expect(try String(decoding: unpack(Self.fixed), as: UTF8.self) == Self.text)
    let once = (0..<300).map { UInt8($0 * $0 / 7 % 251) }
    #expect(try unpack(Self.dynamic) == once + once + [UInt8](repeating: 97, count: 600))
  }

  @Test func `a cached model that unpacks to more bytes than allowed is refused`() throws {
    for packed in [Self.stored, Self.fixed, Self.dynamic] {
      #expect(throws: ByteReader.Damage.self) { try unpack(packed, atMost: 59) }
    }
    #expect(try unpack(Self.fixed, atMost: 60).count == 60)
  }

  private static func cache(of fixture: CoreDataFixture) throws -> [UInt8] {
    let directory = try TemporaryDirectory()
    let path = try fixture.copy(to: directory)
    guard
      case .blob(let bytes)? = try TestDatabase.value(path, "SELECT Z_CONTENT FROM Z_MODELCACHE")
    else { return [] }
    return bytes
  }

  @Test func `the cached model of a Core Data store is read with its relationships`() throws {
    let model = try CachedModel(Self.cache(of: .books))
    #expect(
      model.entities.keys.sorted() == [
        "Author", "Book", "Feedback", "GraphicNovel", "Page", "Writer",
      ]
    )
    let pages = try #require(model.entities["Book"]?.first { $0.name == "pages" })
    guard case .relationship(let destination, let inverse, let isToMany, let rule) = pages.kind
    else {
      Issue.record("pages is no relationship")
      return
    }
    #expect(destination == "Page" && inverse == "book" && isToMany && rule == .cascade)
    let book = try #require(model.entities["Page"]?.first { $0.name == "book" })
    #expect(!book.isOptional)
    #expect(model.entities["Book"]?.first { $0.name == "pagesCount" }?.isDerived == true)
    // What is fetched or transient is kept nowhere.
    #expect(model.entities["Author"]?.contains { $0.name == "favFeedbacks" } == false)
  }

  @Test func `a cached model whose entities contain themselves is refused`() {
    func text(_ text: String) -> [UInt8] { [0x50 | UInt8(text.utf8.count)] + text.utf8 }
    // {"$objects": ["$null", {"NSEntities": UID 2}, {"values": UID 2}], "$top": {"root": UID 1}}
    let objects: [[UInt8]] = [
      [0xd2, 1, 3, 2, 4], text("$objects"), [0xa3, 5, 6, 9], text("$top"), [0xd1, 11, 12],
      text("$null"), [0xd1, 7, 8], text("NSEntities"), [0x80, 2], [0xd1, 10, 8], text("values"),
      text("root"), [0x80, 1],
    ]
    var bytes = Array("bplist00".utf8)
    var offsets: [UInt8] = []
    for object in objects {
      offsets.append(UInt8(bytes.count))
      bytes += object
    }
    let table = UInt8(bytes.count)
    func number(_ value: UInt8) -> [UInt8] { Array(repeating: 0, count: 7) + [value] }
    bytes += offsets + [0, 0, 0, 0, 0, 0, 1, 1]
    bytes += number(UInt8(objects.count)) + number(0) + number(table)
    #expect { try CachedModel(bytes) } throws: { error in
      (error as? ByteReader.Damage).map { "\($0)".contains("no entities") } == true
    }
  }

  @Test(arguments: CoreDataFixture.allCases)
  func `a damaged cached model never traps`(fixture: CoreDataFixture) throws {
    let packed = try Self.cache(of: fixture)
    let plain = try Inflation.unpack(packed, atMost: 1 << 20)
    let seed = UInt64.random(in: .min ... .max)
    var generator = SeededGenerator(seed: seed)
    var refused = 0
    for bytes in [packed, plain] {
      for count in 0..<min(bytes.count, 64)
      where (try? CachedModel(Array(bytes.prefix(count)))) == nil {
        refused += 1
      }
      for _ in 0..<300 {
        var damaged = bytes
        for _ in 0...Int.random(in: 0...3, using: &generator) {
          let place = Int.random(in: damaged.indices, using: &generator)
          damaged[place] = UInt8.random(in: 0...255, using: &generator)
        }
        if Bool.random(using: &generator) {
          // The trailer of a list decides most.
          let place = Int.random(in: (damaged.count - 32)..<damaged.count, using: &generator)
          damaged[place] = UInt8.random(in: 0...255, using: &generator)
        }
        if (try? CachedModel(damaged)) == nil { refused += 1 }
      }
    }
    #expect(refused > 128, "seed \(seed)")
  }
}
