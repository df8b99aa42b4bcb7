import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation
import Testing

/// The promises of Core Data and SwiftData about identifiers.
@Suite struct IdentifierConformanceTests {
  let directory: TemporaryDirectory
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try Shop.make(in: directory)
  }

  private func first() async throws -> (ModelContainer, PersistentIdentifier) {
    let container = try await Shop.open(path)
    let list = try ModelContext(container).fetchIdentifiers(FetchRequest(entity: "Order", limit: 1))
    return (container, try #require(list.first))
  }

  private func json(_ fields: [String: Any]) throws -> Data {
    try JSONSerialization.data(withJSONObject: ["implementation": fields])
  }

  private func fields(of identifier: PersistentIdentifier) throws -> [String: Any] {
    [
      "primaryKey": identifier.primaryKey, "uriRepresentation": identifier.uriString,
      "isTemporary": false, "storeIdentifier": try #require(identifier.storeIdentifier),
      "entityName": identifier.entityName,
    ]
  }

  @Test func `C1 a permanent URI names store, entity and key`() async throws {
    let (container, identifier) = try await first()
    let uuid = container.stores[0].identity.uuid
    #expect(identifier.uriString == "x-coredata://\(uuid)/Order/p1")
  }

  @Test func `C2 a URI is preserved byte for byte, and its identifier is equal`() async throws {
    let (_, identifier) = try await first()
    let again = try #require(
      PersistentIdentifier(uriRepresentation: identifier.uriRepresentation)
    )
    #expect(again == identifier)
    #expect(again.uriRepresentation.absoluteString == identifier.uriString)
  }

  @Test func `C3 a temporary URI has no host, and t, a UUID and digits`() {
    let uri = PersistentIdentifier.temporary(entityName: "Item").uriString
    #expect(uri.wholeMatch(of: /x-coredata:\/\/\/Item\/t[0-9A-F-]{36}[0-9]+/) != nil)
  }

  @Test func `C4 the other temporary form has the entity as its host, and a UUID`() {
    let uri = PersistentIdentifier.temporary(entityName: "Item", form: .swiftData).uriString
    #expect(uri.wholeMatch(of: /x-swiftdata:\/\/Item\/[0-9A-F-]{36}/) != nil)
  }

  @Test func `C5 an identifier of a custom store is refused by a SQLite store`() async throws {
    let container = try await Shop.open(path)
    let identifier = try PersistentIdentifier.identifier(
      for: container.stores[0].identity.uuid,
      entityName: "Order",
      primaryKey: "p1"
    )
    #expect(identifier.uriString.hasPrefix("x-developer-provided://"))
    #expect(container.identifier(forURI: identifier.uriRepresentation) == nil)
    #expect(throws: BatchError.self) {
      try ModelContext(container).existingModel(for: identifier)
    }
  }

  @Test func `C11 the primary key keeps its p; store and entity come from the URI`() async throws {
    let (_, identifier) = try await first()
    let url = identifier.uriRepresentation
    #expect(identifier.primaryKey == "p1" && identifier.primaryKey == url.lastPathComponent)
    #expect(identifier.storeIdentifier == url.host())
    #expect(identifier.entityName == url.pathComponents[1])
  }

  @Test func `C12 JSON of the five fields decodes to an equal identifier that finds its row`()
    async throws
  {
    let (container, identifier) = try await first()
    let decoded = try JSONDecoder().decode(
      PersistentIdentifier.self,
      from: json(fields(of: identifier))
    )
    #expect(decoded == identifier)
    let object = try ModelContext(container).existingModel(for: decoded)
    #expect(object.persistentModelID == identifier && !object.isFault)
  }

  @Test func `C13 JSON without a store decodes, as temporary or without a store`() async throws {
    let temporary = PersistentIdentifier.temporary(entityName: "Item")
    let decoded = try JSONDecoder().decode(
      PersistentIdentifier.self,
      from: json([
        "primaryKey": temporary.primaryKey, "uriRepresentation": temporary.uriString,
        "isTemporary": true, "entityName": "Item",
      ])
    )
    #expect(decoded == temporary && decoded.isTemporary && decoded.storeIdentifier == nil)
    let (container, identifier) = try await first()
    var fields = try fields(of: identifier)
    fields["storeIdentifier"] = nil
    let named = try JSONDecoder().decode(PersistentIdentifier.self, from: json(fields))
    #expect(named == identifier)
    fields["uriRepresentation"] = "x-coredata:///Order/p1"
    let unbound = try JSONDecoder().decode(PersistentIdentifier.self, from: json(fields))
    #expect(unbound.storeIdentifier == nil && !unbound.isTemporary)
    let error = #expect(throws: BatchError.self) {
      try ModelContext(container).existingModel(for: unbound)
    }
    #expect(error?.code == .foreignIdentifier)
  }

  @Test
  func `C14 encoding a decoded identifier gives identical bytes, with slashes escaped or not`()
    async throws
  {
    let (_, identifier) = try await first()
    for formatting in [
      JSONEncoder.OutputFormatting.sortedKeys, [.sortedKeys, .withoutEscapingSlashes],
    ] {
      let encoder = JSONEncoder()
      encoder.outputFormatting = formatting
      let text = try encoder.encode(identifier)
      let decoded = try JSONDecoder().decode(PersistentIdentifier.self, from: text)
      #expect(decoded == identifier)
      #expect(try encoder.encode(decoded) == text)
    }
  }

  @Test func `C15 identifiers are hashed and ordered by value: p9 comes before p10`() {
    let keys = [10, 9, 100, 9].map {
      PersistentIdentifier(storeIdentifier: "S", entityName: "Item", key: .integer($0))
    }
    #expect(Set(keys).sorted().map(\.primaryKey) == ["p9", "p10", "p100"])
  }

  @Test func `C23 a custom reference is escaped like a path and returned escaped`() {
    let identifier = PersistentIdentifier(
      storeIdentifier: "S",
      entityName: "Item",
      reference: "key with/slash"
    )
    #expect(identifier.uriString == "x-coredata://S/Item/pkey%20with/slash")
    #expect(
      PersistentIdentifier(uriString: identifier.uriString)?.primaryKey == "pkey%20with/slash"
    )
  }
}
