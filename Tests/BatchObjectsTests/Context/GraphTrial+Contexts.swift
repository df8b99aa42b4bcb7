import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport

/// The saves of others, and the results of saves.
extension GraphTrial {
  /// Updates a context with the saves of others, each in its own way.
  func catchUp(_ side: Int, _ way: Int) throws {
    guard sides[side].isBehind else { return }
    sides[side].isBehind = false
    sides[side].seen = store
    let context = sides[side].context
    switch side {
    case 0: _ = try context.fetchCount(FetchDescriptor<Circle>())
    case 1:
      context.refreshAllObjects()
      for number in sides[side].unsaved.updated { sides[side].unsaved.dropBases(of: number) }
      for number in sides[side].unsaved.deleted.keys {
        sides[side].unsaved.deleted[number] = .some(nil)
      }
    default: context.mergeChanges(sides[side].changes)
    }
    sides[side].changes = ModelChanges()
    for (number, identifier) in sortedIdentifiers where store.nodes[number] != nil {
      if sides[side].objects[number] == nil {
        sides[side].objects[number] = try context.existingModel(for: identifier)
      }
    }
    var unsaved = sides[side].unsaved
    // What others have since related to deleted objects is deleted with them.
    for number in unsaved.deleted.keys.sorted() where store.nodes[number] != nil {
      unsaved.delete(number, in: store)
    }
    // What was changed here and deleted there cannot be shown in one way only.
    let isLost =
      unsaved.updated.contains { store.nodes[$0] == nil }
      || unsaved.outcome(in: store).refusal != nil
    if isLost {
      if way % 2 == 0 {
        do {
          try context.save()
          throw Violation(description: "a save of what cannot be saved succeeds")
        } catch let error as BatchError {
          let codes: [BatchError.Code] = [
            .mergeConflict, .constraint, .deleteDenied, .validationFailed,
          ]
          try require(codes.contains(error.code), "\(error)")
          tally["\(error.code.rawValue) after changes of others", default: 0] += 1
        }
      }
      rollback(side)
    }
    for number in sides[side].objects.keys
    where store.nodes[number] == nil && !sides[side].unsaved.inserted.contains(number) {
      sides[side].objects[number] = nil
    }
  }

  /// The objects whose rows have changed since something was set on them.
  private func conflicts(of unsaved: GraphTwin.Unsaved, _ side: Int) -> [Int] {
    var conflicts: [Int] = []
    for (number, edit) in unsaved.names {
      if let base = edit.base, store.nodes[number]?.name != base { conflicts.append(number) }
    }
    for (number, edit) in unsaved.codes {
      if let base = edit.base, store.nodes[number]?.code != base { conflicts.append(number) }
    }
    for (number, edits) in unsaved.links {
      for (link, edit) in edits {
        if let base = edit.base, store.nodes[number]?.links[link] != base {
          conflicts.append(number)
        }
      }
    }
    // A context that lags behind has outdated rows.
    let (isBehind, seen) = (sides[side].isBehind, sides[side].seen)
    for number in unsaved.updated where isBehind {
      // Where others have changed a value and changed it back, it is as before.
      var expected = seen.nodes[number]
      if let base = unsaved.names[number]?.base { expected?.name = base }
      if let base = unsaved.codes[number]?.base { expected?.code = base }
      for (link, edit) in unsaved.links[number] ?? [:] {
        if let base = edit.base { expected?.links[link] = base }
      }
      if expected != store.nodes[number] { conflicts.append(number) }
    }
    for (number, row) in unsaved.deleted {
      if let row, let now = store.nodes[number], row != now { conflicts.append(number) }
    }
    return conflicts
  }

  func save(_ step: Step) throws {
    let side = step.context
    let before = store
    var unsaved = sides[side].unsaved
    var conflicts = conflicts(of: unsaved, side)
    let isBehind = sides[side].isBehind
    // What others have since related to deleted objects is deleted with them.
    for number in unsaved.deleted.keys.sorted() where before.nodes[number] != nil {
      unsaved.delete(number, in: before)
    }
    let context = sides[side].context
    let overrules =
      step.numbers[1] % 4 == 0 && !isBehind
      && unsaved.updated.allSatisfy { before.nodes[$0] != nil }
    if overrules {
      // Values set here are written, whatever others have written.
      context.mergePolicy = .mergeByPropertyObjectTrump
      conflicts = []
    }
    defer { context.mergePolicy = .error }
    let (after, aliases, refusal) = unsaved.outcome(in: before)
    do {
      try context.save()
    } catch {
      let isExpected =
        error.code == refusal
        || error.code == .mergeConflict && !conflicts.isEmpty
        || isBehind && [.mergeConflict, .constraint, .deleteDenied].contains(error.code)
      try require(isExpected, "the save fails: \(error)")
      tally[error.code.rawValue, default: 0] += 1
      // What was refused is unsaved as before.
      if isBehind || step.numbers[0] % 2 == 0 { rollback(side) }
      return
    }
    // If others have set a value, a new object may set the same value, which is no longer a change.
    if !isBehind { conflicts.removeAll { aliases.values.contains($0) } }
    try require(
      conflicts.isEmpty && refusal == nil,
      "the save should fail: \(conflicts) \(refusal?.rawValue ?? "")"
    )
    tally["saves", default: 0] += 1
    tally["upserts", default: 0] += aliases.count
    if overrules { tally["saves that overrule", default: 0] += 1 }
    store = after
    try settle(side, from: before, aliases)
  }

  /// Notes what a save has done, and holds the history and the store to it.
  private func settle(
    _ side: Int,
    from before: GraphTwin.Graph,
    _ aliases: [Int: Int]
  ) throws {
    // Where the context had no object of the row, the first of them is that now.
    for (alias, owner) in aliases.sorted(by: { $0.key < $1.key }) {
      let object = sides[side].objects.removeValue(forKey: alias)
      let known = sides[side].objects[owner] ?? object
      sides[side].objects[owner] = known
      try require(
        object?.persistentModelID == known?.persistentModelID
          && (object as? Badge)?.label == store.nodes[owner]?.name,
        "\(alias) is not \(owner)"
      )
    }
    var changes = ModelChanges()
    for number in sides[side].unsaved.inserted.sorted() where store.nodes[number] != nil {
      guard let object = sides[side].objects[number] else { continue }
      identifiers[number] = object.persistentModelID
      changes.inserted.append(object.persistentModelID)
    }
    for (number, identifier) in sortedIdentifiers {
      if store.nodes[number] == nil, before.nodes[number] != nil {
        changes.deleted.append(identifier)
        sides[side].objects[number] = nil
      } else if let old = before.nodes[number], old != store.nodes[number] {
        changes.updated.append(identifier)
      }
    }
    let isChanged = store != before
    sides[side].unsaved = GraphTwin.Unsaved()
    if !sides[side].isBehind { sides[side].seen = store }
    for other in sides.indices where other != side && isChanged {
      sides[other].isBehind = true
      sides[other].changes.inserted += changes.inserted
      sides[other].changes.updated += changes.updated
      sides[other].changes.deleted += changes.deleted
    }
    if isChanged { try compareHistory(from: before) }
    try compareStore()
  }
}
