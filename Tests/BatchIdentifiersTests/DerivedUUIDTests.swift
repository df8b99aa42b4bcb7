import BatchIdentifiers
import Testing

@Suite struct DerivedUUIDTests {
  @Test func `the UUID derived from a text never changes between versions`() {
    // Stored identifiers contain it.
    #expect(XXHash64.uuid(of: "/tmp/h4/derived/shop.db") == "C2496136-B519-8FC4-9F16-18E7E04D27FA")
  }

  @Test func `derived UUIDs are of version 8 and distinct`() {
    let uuids = (0..<1_000).map { XXHash64.uuid(of: "\($0)") }
    #expect(Set(uuids).count == uuids.count)
    for uuid in uuids {
      let form = /[0-9A-F]{8}-[0-9A-F]{4}-8[0-9A-F]{3}-[89AB][0-9A-F]{3}-[0-9A-F]{12}/
      #expect(uuid.wholeMatch(of: form) != nil)
    }
  }
}
