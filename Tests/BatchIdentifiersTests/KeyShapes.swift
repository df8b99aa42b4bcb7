import BatchTestSupport

/// Keys of shapes that bring out every coding, some mixed within one list.
struct KeyShapes {
  static let names = [
    "nothing", "one", "two", "dense", "descending", "every third", "half", "third", "fifth",
    "tenth", "hundredth", "nine tenths", "runs", "long runs", "holes", "extremes", "wide", "jitter",
    "pattern", "shuffled", "zigzag", "ordered parts", "same", "descending tenth", "few runs far",
    "signed pattern", "mixed",
  ]

  var generator: SeededGenerator

  init(seed: UInt64) {
    generator = SeededGenerator(seed: seed)
  }

  mutating func keys(_ name: String, count: Int) -> [Int64] {
    let n = Int64(count)
    switch name {
    case "nothing": return []
    case "one": return [random(-1000...1000)]
    case "two": return [5, 4]
    case "dense": return Array(-7..<(n - 7))
    case "descending": return Array((0..<n).reversed())
    case "every third": return (0..<n).map { $0 * 3 - 100 }
    case "half": return selection(count, 0.5)
    case "third": return selection(count, 0.36)
    case "fifth": return selection(count, 0.2)
    case "tenth": return selection(count, 0.1)
    case "hundredth": return selection(count, 0.01)
    case "nine tenths": return selection(count, 0.9)
    case "runs": return runs(count, 1...12, 2...50)
    case "long runs": return runs(count, 1...900, 2...3000)
    case "holes": return (0..<n).filter { $0 % 97 != 3 }
    case "extremes": return [.min, .min + 1, -1, 0, 1, 1 << 40, .max - 1, .max]
    case "wide": return (0..<n).map { _ in random(.min ... .max) }.sorted()
    case "jitter": return (0..<n).map { $0 * 1000 + random(0...15) }
    case "pattern": return steps(count) { [1, 5000, 77, 123_456, 9, 800][$0 % 6] }
    case "signed pattern": return steps(count) { [1, -5000, 77, 123_456, -9, 800][$0 % 6] }
    case "shuffled": return Array(0..<n).shuffled(using: &generator)
    case "zigzag": return steps(count) { $0 % 2 == 0 ? 9 : -4 }
    case "ordered parts": return (0..<5).flatMap { _ in selection(count / 5, 0.3) }
    case "same": return Array(repeating: 42, count: count)
    case "descending tenth": return selection(count, 0.1).reversed()
    case "few runs far": return (0..<n).map { $0 + ($0 / 1000) << 52 }
    default: return mixed(count)
    }
  }

  private mutating func mixed(_ count: Int) -> [Int64] {
    var keys: [Int64] = []
    while keys.count < count {
      let name = Self.names.dropLast().randomElement(using: &generator) ?? "one"
      let part = self.keys(name, count: Int.random(in: 1...700, using: &generator))
      let offset = (keys.last ?? 0) &- (part.first ?? 0) &+ 1
      keys += part.map { $0 &+ offset }
    }
    return Array(keys.prefix(count))
  }

  private mutating func random(_ range: ClosedRange<Int64>) -> Int64 {
    Int64.random(in: range, using: &generator)
  }

  private mutating func selection(_ count: Int, _ share: Double) -> [Int64] {
    let limit = UInt64(share * 0x1p63) &* 2
    var key: Int64 = 10
    var keys: [Int64] = []
    while keys.count < count {
      key += 1
      if share == 1 || generator.next() < limit { keys.append(key) }
    }
    return keys
  }

  private mutating func runs(
    _ count: Int,
    _ lengths: ClosedRange<Int>,
    _ gaps: ClosedRange<Int64>
  ) -> [Int64] {
    var key: Int64 = 10
    var keys: [Int64] = []
    while keys.count < count {
      key += random(gaps)
      for _ in 0..<Int.random(in: lengths, using: &generator) where keys.count < count {
        key += 1
        keys.append(key)
      }
    }
    return keys
  }

  private func steps(_ count: Int, _ step: (Int) -> Int64) -> [Int64] {
    var key: Int64 = 10
    return (0..<count).map { index in
      key &+= step(index)
      return key
    }
  }
}

extension [Int64] {
  /// Whether each is greater than the one before.
  var isAscending: Bool { zip(self, dropFirst()).allSatisfy { $0 < $1 } }
}
