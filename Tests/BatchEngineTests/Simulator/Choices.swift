import BatchTestSupport

/// The choices that make a schedule, each a number of which 0 is the plainest.
///
/// A seed makes them, or a list of those that were made before: cut or made plainer it is another
/// schedule, which is all that it takes to look for the smallest one that fails.
struct Choices {
  private var generator: SeededGenerator
  private let given: [Int]
  /// Whether those after the given ones are all 0.
  private let endsPlainly: Bool
  private(set) var made: [Int] = []

  /// Those of a seed, after some that are given.
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

  /// One of so many.
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

  /// Whether something happens that does so once in so many times.
  mutating func once(in count: Int) -> Bool { below(count) == count - 1 }

  /// One of some, the plainest first.
  mutating func one<Element>(of elements: [Element]) -> Element { elements[below(elements.count)] }
}
