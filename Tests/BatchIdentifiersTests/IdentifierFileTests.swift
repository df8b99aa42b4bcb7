import BatchIdentifiers
import SystemPackage
import Testing

@Suite struct IdentifierFileTests {
  @Test func `a file gives back its list, metadata and records`() throws {
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
