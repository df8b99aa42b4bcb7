import BatchIdentifiers
import Foundation
import Testing

@Suite struct IdentifierListCodingTests {
  private func list(_ keys: [PrimaryKey], _ kind: IdentifierList.KeyKind) -> IdentifierList {
    var builder = IdentifierListBuilder(
      storeIdentifier: "6E5D1507-3E60-41F0-A5F7-C1F28DC63F40",
      entityName: "Order",
      keyKind: kind
    )
    for key in keys { builder.append(key) }
    return builder.finish()
  }

  @Test func `a list is unchanged after encoding and decoding`() throws {
    let lists = [
      list([], .integer), list([.integer(3), .integer(1), .integer(.min)], .integer),
      list([.text("a"), .integer(7), .blob([0, 255])], .encoded),
    ]
    for list in lists {
      let data = try JSONEncoder().encode(list)
      let decoded = try JSONDecoder().decode(IdentifierList.self, from: data)
      #expect(Array(decoded) == Array(list))
      #expect(decoded.space == list.space)
    }
  }

  @Test func `a list refuses to decode identifiers of other entities and temporary ones`() throws {
    let foreign = PersistentIdentifier(storeIdentifier: "S", entityName: "Car", key: .integer(1))
    let temporary = PersistentIdentifier.temporary(entityName: "Order")
    for identifier in [foreign, temporary] {
      let encoded = String(decoding: try JSONEncoder().encode(identifier), as: UTF8.self)
      let json = """
        {"storeIdentifier":"S","entityName":"Order","identifiers":[\(encoded)]}
        """
      #expect(throws: DecodingError.self) {
        try JSONDecoder().decode(IdentifierList.self, from: Data(json.utf8))
      }
    }
  }
}
