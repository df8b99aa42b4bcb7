import BatchIdentifiers
import Testing

@Suite struct NearestNameTests {
  @Test(arguments: [
    ("wehre", "where"), ("Where", "where"), ("wher", "where"), ("order_by", "orderBy"),
    ("orderby", "orderBy"), ("limt", "limit"), ("enttiy", "entity"),
  ])
  func `a misspelled name finds the intended one`(name: String, expected: String) {
    let names = ["entity", "where", "orderBy", "limit", "recheck"]
    #expect(nearestName(to: name, among: names) == expected)
  }

  @Test(arguments: ["filter", "x", "", "where", String(repeating: "w", count: 1000)])
  func `a name unlike all others has no nearest name`(name: String) {
    #expect(nearestName(to: name, among: ["where", "limit"]) == nil)
  }

  @Test func `the alphabetically first of several equally near names wins`() {
    #expect(nearestName(to: "cat", among: ["rat", "bat", "hat"]) == "bat")
  }

  @Test func `a remedy suggests the nearest name or lists all names`() {
    let columns = ["price", "name"]
    #expect(
      remedyForUnknownName("prize", among: columns, kind: "columns") == #"did you mean "price"?"#
    )
    #expect(
      remedyForUnknownName("zzz", among: columns, kind: "columns")
        == "the columns are price, name"
    )
    #expect(remedyForUnknownName("zzz", among: [], kind: "columns") == "there are no columns")
  }
}
