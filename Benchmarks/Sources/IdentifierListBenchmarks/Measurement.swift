import Foundation

/// The result of one encoding for some sets.
struct Measurement: Codable {
  var data: String
  var encoding: String
  var identifiers: Int
  var bitsPerIdentifier: Double
  var bitsPerIdentifierWithHeader: Double?
  var encodedPerSecond: Double?
  var decodedPerSecond: Double?

  init(_ data: String, _ encoding: String, identifiers: Int, bits: Double) {
    self.data = data
    self.encoding = encoding
    self.identifiers = identifiers
    bitsPerIdentifier = bits / Double(max(identifiers, 1))
  }

  init<Kind: Encoding>(_ data: String, _ encoding: Kind, _ sets: [[Int64]]) {
    let packed = sets.map { encoding.pack($0) }
    let count = sets.reduce(0) { $0 + $1.count }
    let sizes = packed.map { encoding.size($0) }
    let payload = sizes.reduce(0) { $0 + $1.payload }
    self.init(data, encoding.name, identifiers: count, bits: Double(payload * 8))
    let whole = sizes.reduce(0) { $0 + $1.whole }
    bitsPerIdentifierWithHeader = Double(whole * 8) / Double(max(count, 1))
    encodedPerSecond = Self.rate(count) { for set in sets { _ = encoding.pack(set) } }
    var keys: [Int64] = []
    decodedPerSecond = Self.rate(count) {
      for set in packed { encoding.unpack(set, into: &keys) }
    }
  }

  /// The best of several rounds, in identifiers a second.
  static func rate(_ count: Int, _ body: () -> Void) -> Double {
    let clock = ContinuousClock()
    var best = Duration.seconds(1000)
    let start = clock.now
    var rounds = 0
    while rounds < 3 || (clock.now - start < .seconds(1) && rounds < 50) {
      best = min(best, clock.measure(body))
      rounds += 1
    }
    return Double(count) / seconds(best)
  }

  static func seconds(_ duration: Duration) -> Double {
    Double(duration.components.seconds) + Double(duration.components.attoseconds) * 1e-18
  }
}

extension [Measurement] {
  func report(asJSON: Bool) throws {
    if asJSON {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
      print(String(decoding: try encoder.encode(self), as: UTF8.self))
      return
    }
    print("data               encoding          bits/id   with header   encode M/s   decode M/s")
    for row in self {
      func number(_ value: Double?, _ width: Int, _ digits: Int, _ scale: Double = 1) -> String {
        let text = value.map { String(format: "%.\(digits)f", $0 / scale) } ?? "-"
        return String(repeating: " ", count: Swift.max(0, width - text.count)) + text
      }
      print(
        row.data.padding(toLength: 19, withPad: " ", startingAt: 0)
          + row.encoding.padding(toLength: 16, withPad: " ", startingAt: 0)
          + number(row.bitsPerIdentifier, 9, 3)
          + number(row.bitsPerIdentifierWithHeader, 14, 3)
          + number(row.encodedPerSecond, 13, 1, 1e6)
          + number(row.decodedPerSecond, 13, 1, 1e6)
      )
    }
  }
}
