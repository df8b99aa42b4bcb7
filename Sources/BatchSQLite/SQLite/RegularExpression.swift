/// A regular expression as in the `sqlite3` shell, for `X REGEXP Y`.
///
/// The matcher follows all alternatives at once, so the time is bounded by the product of the
/// lengths of expression and text. See <https://www.sqlite.org/src/file/ext/misc/regexp.c>.
struct RegularExpression {
  /// A step of the program; the integers are indices of steps.
  enum Step {
    case character(UInt32)
    case any
    case set([ClosedRange<UInt32>], isNegated: Bool)
    case start
    case end
    case boundary
    case fork(Int, Int)
    case jump(Int)
    case accept
  }

  struct Refusal: Error {
    let reason: String
  }

  /// The maximum number of steps, as in the shell.
  static let maximumSteps = 25_000

  private let steps: [Step]
  private let ignoresCase: Bool

  /// Compiles an expression in UTF-8; `ignoresCase` applies only to the letters A to Z.
  init(_ pattern: UnsafeRawBufferPointer, ignoringCase ignoresCase: Bool = false) throws(Refusal) {
    self.ignoresCase = ignoresCase
    var scalars: [UInt32] = []
    var place = 0
    while let scalar = unsafe Self.scalar(of: pattern, at: &place) {
      scalars.append(Self.folded(scalar, ignoresCase))
    }
    var compiler = RegularExpressionCompiler()
    // A leading "^" applies to all alternatives.
    if scalars.first == 0x5e {
      scalars.removeFirst()
      try compiler.append(.start)
    }
    var parser = RegularExpressionParser(scalars)
    try compiler.add(parser.parse())
    try compiler.append(.accept)
    steps = compiler.steps
  }

  /// Whether a part of a UTF-8 text matches.
  func matches(_ text: UnsafeRawBufferPointer) -> Bool {
    var now = States(capacity: steps.count)
    var next = States(capacity: steps.count)
    var place = 0
    var last: UInt32?
    while true {
      let scalar = unsafe Self.scalar(of: text, at: &place).map { Self.folded($0, ignoresCase) }
      // A match may begin anywhere.
      now.insert(0)
      var index = 0
      while index < now.count {
        let number = now[index]
        index += 1
        switch steps[number] {
        case .accept: return true
        case .jump(let target): now.insert(target)
        case .fork(let first, let second):
          now.insert(first)
          now.insert(second)
        case .start: if last == nil { now.insert(number + 1) }
        case .end: if scalar == nil { now.insert(number + 1) }
        case .boundary:
          if Self.isWord(last) != Self.isWord(scalar) { now.insert(number + 1) }
        case .character(let wanted): if scalar == wanted { next.insert(number + 1) }
        case .any: if scalar != nil { next.insert(number + 1) }
        case .set(let ranges, let isNegated):
          if let scalar, ranges.contains(where: { $0.contains(scalar) }) != isNegated {
            next.insert(number + 1)
          }
        }
      }
      guard let scalar else { return false }
      last = scalar
      swap(&now, &next)
      next.removeAll()
    }
  }

  private struct States {
    private var numbers: [Int] = []
    private var isIn: [Bool]

    init(capacity: Int) { isIn = [Bool](repeating: false, count: capacity) }

    var count: Int { numbers.count }
    subscript(index: Int) -> Int { numbers[index] }

    mutating func insert(_ number: Int) {
      guard !isIn[number] else { return }
      isIn[number] = true
      numbers.append(number)
    }

    mutating func removeAll() {
      for number in numbers { isIn[number] = false }
      numbers.removeAll(keepingCapacity: true)
    }
  }

  private static func isWord(_ scalar: UInt32?) -> Bool {
    scalar.map { scalar in RegularExpressionParser.word.contains { $0.contains(scalar) } } ?? false
  }

  private static func folded(_ scalar: UInt32, _ ignoresCase: Bool) -> UInt32 {
    ignoresCase && (0x41...0x5a).contains(scalar) ? scalar | 0x20 : scalar
  }

  /// The character at `place`, which is advanced past it; nil at the end or at a NUL character.
  ///
  /// A byte that is not valid UTF-8 yields U+FFFD.
  private static func scalar(of text: UnsafeRawBufferPointer, at place: inout Int) -> UInt32? {
    guard place < text.count, unsafe text[place] != 0 else { return nil }
    let first = unsafe text[place]
    place += 1
    if first < 0x80 { return UInt32(first) }
    let (count, least): (Int, UInt32) =
      switch first {
      case 0xc0...0xdf: (1, 0x80)
      case 0xe0...0xef: (2, 0x800)
      case 0xf0...0xf7: (3, 0x10000)
      default: (0, 0)
      }
    guard count > 0, place + count <= text.count else { return 0xfffd }
    var scalar = UInt32(first) & (0x3f >> UInt32(count))
    for offset in 0..<count {
      let byte = unsafe text[place + offset]
      guard byte & 0xc0 == 0x80 else { return 0xfffd }
      scalar = scalar << 6 | UInt32(byte & 0x3f)
    }
    place += count
    return scalar < least || Unicode.Scalar(scalar) == nil ? 0xfffd : scalar
  }
}

struct RegularExpressionCompiler {
  private(set) var steps: [RegularExpression.Step] = []

  mutating func append(_ step: RegularExpression.Step) throws(RegularExpression.Refusal) {
    guard steps.count < RegularExpression.maximumSteps else {
      throw .init(reason: "the regular expression is too long")
    }
    steps.append(step)
  }

  mutating func add(_ part: RegularExpressionPart) throws(RegularExpression.Refusal) {
    switch part {
    case .step(let step): try append(step)
    case .sequence(let parts): for part in parts { try add(part) }
    case .either(let first, let second):
      let fork = steps.count
      try append(.fork(fork + 1, 0))
      try add(first)
      let jump = steps.count
      try append(.jump(0))
      steps[fork] = .fork(fork + 1, steps.count)
      try add(second)
      steps[jump] = .jump(steps.count)
    case .repeated(let part, let least, let most):
      for _ in 0..<least { try add(part) }
      guard let most else {
        let fork = steps.count
        try append(.fork(fork + 1, 0))
        try add(part)
        try append(.jump(fork))
        return steps[fork] = .fork(fork + 1, steps.count)
      }
      var forks: [Int] = []
      for _ in least..<most {
        forks.append(steps.count)
        try append(.fork(steps.count + 1, 0))
        try add(part)
      }
      for fork in forks { steps[fork] = .fork(fork + 1, steps.count) }
    }
  }
}
