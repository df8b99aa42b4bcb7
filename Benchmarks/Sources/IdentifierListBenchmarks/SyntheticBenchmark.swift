import BatchIdentifiers
import Foundation

/// A generator whose numbers are the same in every run.
struct SplitMix64: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}

/// Synthetic lists of several shapes.
struct SyntheticBenchmark {
  let count: Int

  func run(asJSON: Bool) throws {
    var rows: [Measurement] = []
    for (name, keys) in shapes() {
      let isSet = zip(keys, keys.dropFirst()).allSatisfy { $0 < $1 }
      if isSet {
        rows += FileBenchmark.rows(name, [keys])
      } else {
        rows += [
          Measurement(name, ListEncoding(), [keys]), Measurement(name, PlainEncoding(), [keys]),
        ]
      }
      if let bound = bound(name) {
        rows.append(
          Measurement(name, "bound", identifiers: keys.count, bits: bound * Double(keys.count))
        )
      }
    }
    rows.append(uuids())
    try rows.report(asJSON: asJSON)
  }

  private func shapes() -> [(String, [Int64])] {
    let all = Int64(count)
    var generator = SplitMix64(state: 42)
    return [
      ("dense", Array(1...all)),
      ("every third", Array(stride(from: 1, through: all * 3, by: 3))),
      ("random 50 %", random(0.5, &generator)),
      ("random 38 %", random(0.38, &generator)),
      ("random 20 %", random(0.2, &generator)),
      ("random 10 %", random(0.1, &generator)),
      ("random 1 %", random(0.01, &generator)),
      ("random 90 %", random(0.9, &generator)),
      ("clustered", clustered(&generator)),
      ("holes", (1...all).filter { $0 % 10_000 != 0 }),
      ("descending", Array((1...all).reversed())),
      ("descending 10 %", random(0.1, &generator).reversed()),
      ("shuffled", Array(1...all).shuffled(using: &generator)),
    ]
  }

  private func random(_ share: Double, _ generator: inout SplitMix64) -> [Int64] {
    var keys: [Int64] = []
    keys.reserveCapacity(count)
    let limit = UInt64(share * 0x1p64)
    var key: Int64 = 0
    while keys.count < count {
      key += 1
      if generator.next() < limit { keys.append(key) }
    }
    return keys
  }

  private func clustered(_ generator: inout SplitMix64) -> [Int64] {
    var keys: [Int64] = []
    var key: Int64 = 0
    while keys.count < count {
      key += Int64.random(in: 2...20_000, using: &generator)
      for _ in 0..<Int.random(in: 1...400, using: &generator) where keys.count < count {
        keys.append(key)
        key += 1
      }
    }
    return keys
  }

  /// The information in a random selection, in bits per selected row.
  private func bound(_ name: String) -> Double? {
    guard let range = name.range(of: "random "),
      let percent = Double(
        name[range.upperBound...].dropLast(2)
      )
    else { return nil }
    let p = percent / 100
    return (-p * log2(p) - (1 - p) * log2(1 - p)) / p
  }

  private func uuids() -> Measurement {
    var generator = SplitMix64(state: 7)
    let total = count / 10
    var keys: [[UInt8]] = []
    for _ in 0..<total {
      let halves = (generator.next(), generator.next())
      keys.append(withUnsafeBytes(of: halves) { [UInt8]($0) })
    }
    keys.sort { $0.lexicographicallyPrecedes($1) }
    func build() -> IdentifierList {
      var builder = IdentifierListBuilder(
        storeIdentifier: "",
        entityName: "set",
        keyKind: .encoded
      )
      var encoder = EncodedKey.Encoder()
      for key in keys {
        encoder.removeAll()
        key.withUnsafeBytes { encoder.append(blob: $0) }
        encoder.bytes.withUnsafeBytes { builder.append(encoded: $0) }
      }
      return builder.finish()
    }
    let list = build()
    var row = Measurement(
      "UUIDs / 10",
      "IdentifierList",
      identifiers: total,
      bits: Double(list.payloadByteCount * 8)
    )
    row.bitsPerIdentifierWithHeader = Double(list.fileByteCount * 8) / Double(total)
    row.encodedPerSecond = Measurement.rate(total) { _ = build() }
    row.decodedPerSecond = Measurement.rate(total) {
      do { _ = try list.encodedKeys(in: 0..<list.count) } catch { fatalError("\(error)") }
    }
    return row
  }
}
