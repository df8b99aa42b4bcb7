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
  func `a key has one text and comes back from it`(key: PrimaryKey, reference: String) throws {
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

  @Test func `an identifier takes no more than 24 bytes`() {
    #expect(MemoryLayout<PersistentIdentifier>.size <= 24)
    #expect(MemoryLayout<PersistentIdentifier>.stride <= 24)
  }

  @Test(arguments: [PersistentIdentifier.TemporaryForm.coreData, .swiftData])
  func `temporary identifiers differ and come back from their URI`(
    form: PersistentIdentifier.TemporaryForm
  ) {
    let first = PersistentIdentifier.temporary(entityName: "Item", form: form)
    let second = PersistentIdentifier.temporary(entityName: "Item", form: form)
    #expect(first != second)
    #expect(first.isTemporary)
    #expect(first.storeIdentifier == nil)
    #expect(PersistentIdentifier(uriString: first.uriString) == first)
  }

  @Test func `p9 comes before p10`() {
    let ids = [10, 9, 100].map {
      PersistentIdentifier(storeIdentifier: "S", entityName: "Item", key: .integer($0))
    }
    #expect(ids.sorted().map(\.primaryKey) == ["p9", "p10", "p100"])
  }
}
