import BatchTestSupport

/// The choices of a schedule, each a number; 0 is the simplest.
///
/// They come from a seed, or from a list of earlier ones: shortened or simplified, it is another
/// schedule, which is how the smallest failing one is found.
struct Choices {
  private var generator: SeededGenerator
  private let given: [Int]
  /// Whether those after the given ones are all 0.
  private let endsPlainly: Bool
  private(set) var made: [Int] = []

  /// The choices of a seed, after some given ones.
  init(seed: UInt64, after given: [Int] = []) {
    generator = SeededGenerator(seed: seed)
    self.given = given
    endsPlainly = false
    made.reserveCapacity(512)
  }

  /// Choices that were made before; after the last of them all are 0.
  init(_ given: [Int]) {
    generator = SeededGenerator(seed: 0)
    self.given = given
    endsPlainly = true
  }

  /// One of a number of choices.
  mutating func below(_ count: Int) -> Int {
    let choice: Int
    if made.count < given.count {
      choice = min(given[made.count], count - 1)
    } else {
      choice = endsPlainly ? 0 : Int(truncatingIfNeeded: generator.next() % UInt64(count))
    }
    made.append(choice)
    return choice
  }

  /// Whether an event happens that has a probability of one in a number.
  mutating func once(in count: Int) -> Bool { below(count) == count - 1 }

  /// One of some, the plainest first.
  mutating func one<Element>(of elements: [Element]) -> Element { elements[below(elements.count)] }
}
