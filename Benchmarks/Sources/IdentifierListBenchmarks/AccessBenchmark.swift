import BatchIdentifiers
import Foundation

/// Single look-ups by position and by key, scattered and adjacent.
struct AccessBenchmark {
  struct Result: Codable {
    var data: String
    var positionColdMicroseconds: Double
    var positionWarmNanoseconds: Double
    var membershipColdMicroseconds: Double
    var membershipWarmNanoseconds: Double
  }

  func run(asJSON: Bool) throws {
    let count = 10_000_000
    var results: [Result] = []
    for (name, share) in [("random 10 %", 0.1), ("random 38 %", 0.38), ("dense", 1.0)] {
      var generator = SplitMix64(state: 3)
      var builder = IdentifierListBuilder(storeIdentifier: "", entityName: "orders")
      var keys: [Int64] = []
      var key: Int64 = 0
      while keys.count < count {
        key += 1
        if share == 1 || generator.next() < UInt64(share * 0x1p64) { keys.append(key) }
      }
      builder.append(contentsOf: keys)
      let list = builder.finish()
      let rounds = 20_000
      let positions = (0..<rounds).map { _ in Int.random(in: 0..<count, using: &generator) }
      var sum: Int64 = 0
      let cold = Measurement.rate(rounds) {
        for position in positions {
          if case .integer(let key)? = list[position].key { sum &+= key }
        }
      }
      let warm = Measurement.rate(rounds) {
        for round in 0..<rounds {
          if case .integer(let key)? = list[5_000_000 + round % 200].key { sum &+= key }
        }
      }
      let wanted = positions.map { keys[$0] + Int64($0 & 1) }
      var found = 0
      func contains(_ key: Int64) -> Bool {
        do { return try list.contains(key: .integer(key)) } catch { fatalError("\(error)") }
      }
      let coldMembership = Measurement.rate(rounds) {
        for key in wanted where contains(key) { found += 1 }
      }
      let warmMembership = Measurement.rate(rounds) {
        for round in 0..<rounds where contains(keys[5_000_000 + round % 200]) { found += 1 }
      }
      if sum == 1, found == 1 { print("") }
      results.append(
        Result(
          data: name,
          positionColdMicroseconds: 1e6 / cold,
          positionWarmNanoseconds: 1e9 / warm,
          membershipColdMicroseconds: 1e6 / coldMembership,
          membershipWarmNanoseconds: 1e9 / warmMembership
        )
      )
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    print(String(decoding: try encoder.encode(results), as: UTF8.self))
  }
}
