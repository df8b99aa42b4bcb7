import BatchTestSupport

extension GraphTrial {
  /// A step, with numbers that choose among the existing objects: part of a list of steps is also
  /// one.
  struct Step: CustomStringConvertible, Sendable {
    enum Action: CaseIterable, Sendable {
      case insert, insertRelated, upsert, rename, recode, swap, setOne, setMany, append, join
      case delete, deleteAndKeep, refresh, forget, reset, rollback, save, look
    }

    let action: Action
    let context: Int
    let numbers: [Int]

    init(using random: inout SeededGenerator) {
      let weighted: [Action] =
        Action.allCases + [
          .insert, .upsert, .upsert, .setOne, .setOne, .setMany, .save, .save, .save,
        ]
      action = weighted[Int.random(in: 0..<weighted.count, using: &random)]
      context = Int.random(in: 0..<3, using: &random)
      numbers = (0..<4).map { _ in Int.random(in: 0..<1_000, using: &random) }
    }

    var description: String { "\(action) in \(context) \(numbers)" }
  }
}
