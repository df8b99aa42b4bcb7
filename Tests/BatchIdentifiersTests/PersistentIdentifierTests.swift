import BatchIdentifiers
import FoundationEssentials
import Testing

@Suite struct PersistentIdentifierTests {
  static let store = "A1B2C3D4-0000-1111-2222-333344445555"

  static let keys: [(PrimaryKey, String)] = [
    (.integer(28), "p28"),
    (.integer(.min), "p-9223372036854775808"),
    (.text("EU"), "p=EU"),
    (.text("a b/ü,%"), "p=a%20b%2F%C3%BC%2C%25"),
    (.text(""), "p="),
    (.text("a\u{0}b"), "p=a%00b"),
    (.blob([0, 255, 16]), "p~00ff10"),
    (.encoded(EncodedKey([.text("EU"), .integer(28)])), "p=EU,28"),
    (.encoded(EncodedKey([.null, .real(2.5), .integer(-1)])), "p!,*2.5,-1"),
    (.encoded(EncodedKey([.real(1e300)])), "p*1e+300"),
  ]

  @Test(arguments: keys)
  func `a key has a unique text and is restored from it`(key: PrimaryKey, reference: String) throws
  {
    let id = PersistentIdentifier(
      storeIdentifier: Self.store,
      entityName: "order lines",
      key: key
    )
    #expect(id.uriString == "x-coredata://\(Self.store)/order%20lines/\(reference)")
    #expect(id.primaryKey == reference)
    #expect(PersistentIdentifier(uriString: id.uriString) == id)
    #expect(PersistentIdentifier(uriRepresentation: id.uriRepresentation) == id)
    #expect(id.uriRepresentation.absoluteString == id.uriString)
    let json = try JSONEncoder().encode(id)
    #expect(try JSONDecoder().decode(PersistentIdentifier.self, from: json) == id)
  }

  @Test func `an identifier takes at most 24 bytes`() {
    #expect(MemoryLayout<PersistentIdentifier>.size <= 24)
    #expect(MemoryLayout<PersistentIdentifier>.stride <= 24)
  }

  @Test(arguments: [PersistentIdentifier.TemporaryForm.coreData, .swiftData])
  func `temporary identifiers are unique and restored from their URIs`(
    form: PersistentIdentifier.TemporaryForm
  ) {
    let first = PersistentIdentifier.temporary(entityName: "Item", form: form)
    let second = PersistentIdentifier.temporary(entityName: "Item", form: form)
    #expect(first != second)
    #expect(first.isTemporary)
    #expect(first.storeIdentifier == nil)
    #expect(PersistentIdentifier(uriString: first.uriString) == first)
  }

  @Test func `identifiers are ordered by number: p9 comes before p10`() {
    let ids = [10, 9, 100].map {
      PersistentIdentifier(storeIdentifier: "S", entityName: "Item", key: .integer($0))
    }
    #expect(ids.sorted().map(\.primaryKey) == ["p9", "p10", "p100"])
  }
}

/// The URI and JSON forms, as Core Data and SwiftData have them.
@Suite struct IdentifierFormTests {
  private func decode(_ json: String) throws -> PersistentIdentifier {
    try JSONDecoder().decode(PersistentIdentifier.self, from: Data(json.utf8))
  }

  @Test func `an identifier preserves its URI byte for byte`() {
    for uri in [
      "x-coredata://6E5D1507-3E60-41F0-A5F7-C1F28DC63F40/Item/p28",
      "x-coredata:///Item/t6E5D1507-3E60-41F0-A5F7-C1F28DC63F402",
      "x-swiftdata://Item/6E5D1507-3E60-41F0-A5F7-C1F28DC63F40",
      "x-developer-provided://store/Item/7", "x-coredata://S/Pr%C3%A9nom/p1",
      "x-coredata://S/Item/pkey%20with/slash", "x-coredata://S/Item/p007",
    ] {
      #expect(PersistentIdentifier(uriString: uri)?.uriString == uri)
    }
  }

  @Test func `an invalid URI gives no identifier`() {
    for uri in [
      "", "x-coredata:", "x-coredata://", "x-coredata://S", "x-coredata://S/Item",
      "x-coredata://S/Item/", "x-coredata://S/Item/28", "x-coredata://S/Item/p",
      "x-coredata://S//p1", "x-coredata://S/Item/t6E5D1507-3E60-41F0-A5F7-C1F28DC63F402",
      "x-coredata:///Item/t6E5D1507-3E60-41F0-A5F7-C1F28DC63F40", "x-swiftdata://Item/7",
      "https://S/Item/p1", "x-coredata://S/It%6/p1", "x-coredata://S/%FF/p1",
      "x-coredata://S/Item/p=a%20b%2", "x-coredata://S/Item/p=%41", "x-coredata://S/Item/p*1.50",
      "x-coredata://S/Item/p~0G", "x-coredata://S/Item/p=a,", "x-coredata://S/Item/p 1",
    ] {
      #expect(PersistentIdentifier(uriString: uri) == nil, "\(uri)")
    }
  }

  @Test func `references of custom stores are escaped like paths and returned escaped`() {
    let id = PersistentIdentifier(
      storeIdentifier: "S",
      entityName: "Item",
      reference: "key with/slash"
    )
    #expect(id.uriString == "x-coredata://S/Item/pkey%20with/slash")
    #expect(id.primaryKey == "pkey%20with/slash")
    #expect(id.key == nil)
    #expect(PersistentIdentifier(uriString: id.uriString) == id)
    let number = PersistentIdentifier(storeIdentifier: "S", entityName: "Item", reference: "28")
    #expect(number.key == .integer(28))
    let marked = PersistentIdentifier(storeIdentifier: "S", entityName: "Item", reference: "=EU")
    #expect(marked.primaryKey == "p%3DEU")
    #expect(PersistentIdentifier(uriString: marked.uriString) == marked)
  }

  @Test func `identifiers of custom stores name their store`() throws {
    let id = try PersistentIdentifier.identifier(for: "s", entityName: "Item", primaryKey: "a b")
    #expect(id.uriString == "x-developer-provided://s/Item/a%20b")
    #expect(id.isDeveloperProvided && !id.isTemporary)
    #expect(PersistentIdentifier(uriString: id.uriString) == id)
    #expect(throws: BatchError.self) {
      try PersistentIdentifier.identifier(for: "", entityName: "Item", primaryKey: 1)
    }
  }

  @Test func `JSON of the five documented fields decodes to an equal identifier`() throws {
    let json = """
      {"implementation":{"primaryKey":"p1","uriRepresentation":"x-coredata:\\/\\/S\\/Item\\/p1",\
      "isTemporary":false,"storeIdentifier":"S","entityName":"Item","more":[1]}}
      """
    let id = try decode(json)
    #expect(id == PersistentIdentifier(storeIdentifier: "S", entityName: "Item", key: .integer(1)))
    #expect(id.primaryKey == "p1" && id.entityName == "Item" && id.storeIdentifier == "S")
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    let once = try encoder.encode(id)
    #expect(try encoder.encode(decode(String(decoding: once, as: UTF8.self))) == once)
  }

  @Test func `JSON without a store is temporary or takes the store from its URI`() throws {
    let temporary = PersistentIdentifier.temporary(entityName: "Item")
    let json = String(decoding: try JSONEncoder().encode(temporary), as: UTF8.self)
    #expect(!json.contains("storeIdentifier"))
    #expect(try decode(json) == temporary)
    let bound = """
      {"implementation":{"primaryKey":"p1","uriRepresentation":"x-coredata://S/Item/p1",\
      "isTemporary":false,"entityName":"Item"}}
      """
    #expect(try decode(bound).storeIdentifier == "S")
    #expect(try decode(bound.replacing("//S/", with: "///")).storeIdentifier == nil)
  }

  @Test func `JSON that contradicts itself is refused`() {
    let good = """
      {"implementation":{"primaryKey":"p1","uriRepresentation":"x-coredata://S/Item/p1",\
      "isTemporary":false,"storeIdentifier":"S","entityName":"Item"}}
      """
    for (old, new) in [
      (#""p1""#, #""p2""#), ("false", "true"), (#""S""#, #""T""#), (#""Item""#, #""Other""#),
      ("x-coredata", "http"), ("implementation", "x"), ("\"isTemporary\":false,", ""),
    ] {
      #expect(throws: DecodingError.self, "\(new)") { try decode(good.replacing(old, with: new)) }
    }
  }

  @Test func `permanent identifiers come before temporary ones, ordered by store and entity`() {
    func id(_ store: String, _ entity: String, _ key: Int64) -> PersistentIdentifier {
      PersistentIdentifier(storeIdentifier: store, entityName: entity, key: .integer(key))
    }
    let first = PersistentIdentifier.temporary(entityName: "A")
    let second = PersistentIdentifier.temporary(entityName: "A")
    let text = PersistentIdentifier(storeIdentifier: "A", entityName: "B", key: .text("1"))
    let ordered = [id("A", "A", 10), id("A", "B", 9), id("A", "B", 10), text, id("B", "A", 1)]
    #expect((ordered + [first, second]).shuffled().sorted() == ordered + [first, second])
  }

  @Test func `names that differ only in Unicode normalization are different names`() {
    let composed = PersistentIdentifier(
      storeIdentifier: "S",
      entityName: "Pr\u{E9}nom",
      key: .integer(1)
    )
    let decomposed = PersistentIdentifier(
      storeIdentifier: "S",
      entityName: "Pre\u{301}nom",
      key: .integer(1)
    )
    #expect(composed != decomposed)
    #expect(PrimaryKey.text("\u{E9}") != .text("e\u{301}"))
    #expect(KeyComponent.text("\u{E9}") != .text("e\u{301}"))
  }

  @Test func `a single integer is an integer key however it was created`() {
    let key = PrimaryKey.encoded(EncodedKey([.integer(28)]))
    let id = PersistentIdentifier(storeIdentifier: "S", entityName: "E", key: key)
    #expect(id.key == .integer(28))
    #expect(id.uriString == "x-coredata://S/E/p28")
  }
}
