import BatchIdentifiers
import Testing

@Suite struct GroupedDigitsTests {
  @Test(arguments: [
    (0, "0"), (999, "999"), (1_000, "1,000"), (-999, "-999"), (-1_000, "-1,000"),
    (3_367_760, "3,367,760"), (Int.min, "-9,223,372,036,854,775,808"),
  ])
  func `digits are grouped by three`(value: Int, text: String) {
    #expect(value.grouped == text)
  }
}
