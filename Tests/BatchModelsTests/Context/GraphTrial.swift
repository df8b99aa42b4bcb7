import BatchIdentifiers
import BatchModels
import BatchStore
import BatchTestSupport
import Foundation

/// Contexts of one store, and beside them a naive twin that says what they have to show.
final class GraphTrial {
  typealias Kind = GraphTwin.Kind
  typealias Link = GraphTwin.Link

  /// How what is shown differs from what the twin says.
  struct Violation: Error, CustomStringConvertible {
    let description: String
  }

  private struct Side {
    let context: ModelContext
    var objects: [Int: ManagedObject] = [:]
    var unsaved = GraphTwin.Unsaved()
    /// Whether others have saved something since it was brought up to date.
    var isBehind = false
    /// What it was brought up to date with.
    var seen = GraphTwin.Graph()
    /// What others have saved since.
    var changes = ModelChanges()
  }

  private let directory: TemporaryDirectory
  private let container: ModelContainer
  private var sides: [Side]
  private var store = GraphTwin.Graph()
  private var identifiers: [Int: PersistentIdentifier] = [:]
  private var last = 0
  /// How many saves were done, and how many refused.
  private(set) var saves = 0
  private(set) var refusals = 0

  init(_ place: Family.Place) async throws {
    directory = try TemporaryDirectory()
    container = try await Family.open(place, in: directory, rows: "", tracksHistory: true)
    sides = []
    for _ in 0..<3 { sides.append(Side(context: ModelContext(container))) }
    sides[0].context.automaticallyMergesChangesFromParent = true
  }

  /// Does one step, and looks at what its context shows then.
  func perform(_ step: Step) throws {
    // Who lags behind is found out by the save.
    if step.action != .save || step.numbers[2] % 3 > 0 {
      try catchUp(step.context, step.numbers[3])
    }
    let view = sides[step.context].unsaved.view(of: store)
    let kind = Kind.allCases[step.numbers[0] % Kind.allCases.count]
    let number = choose(step.numbers[1], among: view.numbers(kind))
    switch step.action {
    case .insert: insert(kind, in: step.context)
    case .insertRelated: insertRelated(kind, step, view)
    case .rename:
      guard let number else { break }
      let name = step.numbers[2] % 5
      rename(sides[step.context].objects[number], name)
      sides[step.context].unsaved.set(number, name: name, in: store)
    case .setOne: setOne(step, view)
    case .setMany: setMany(step, view)
    case .append: append(step, view)
    case .join: join(step, view)
    case .delete:
      guard let number else { break }
      delete(number, in: step.context)
    case .deleteAndKeep:
      guard let number, !sides[step.context].unsaved.inserted.contains(number),
        let object = sides[step.context].objects[number]
      else { break }
      let context = sides[step.context].context
      context.delete(object)
      if step.numbers[2] % 2 == 0 { _ = try context.fetchCount(FetchDescriptor<Pet>()) }
      context.insert(object)
    case .rollback: rollback(step.context)
    case .save: try save(step.context)
    case .look: break
    }
    if !sides[step.context].isBehind { try compare(step.context) }
  }

  private func choose(_ number: Int, among numbers: [Int]) -> Int? {
    numbers.isEmpty ? nil : numbers[number % numbers.count]
  }

  // MARK: Steps

  private func make(_ kind: Kind) -> (number: Int, object: ManagedObject) {
    last += 1
    switch kind {
    case .person: return (last, Person("0"))
    case .pet: return (last, Pet("0"))
    case .toy: return (last, Toy("0"))
    case .passport: return (last, Passport(0))
    case .club: return (last, Circle("0"))
    }
  }

  private func note(_ number: Int, _ object: ManagedObject, _ kind: Kind, in side: Int) {
    sides[side].objects[number] = object
    sides[side].unsaved.inserted.insert(number)
    sides[side].unsaved.new.nodes[number] = GraphTwin.Node(kind: kind)
  }

  private func insert(_ kind: Kind, in side: Int) {
    let (number, object) = make(kind)
    sides[side].context.insert(object)
    note(number, object, kind, in: side)
  }

  /// Has new objects come into the context by what they are related to.
  private func insertRelated(_ kind: Kind, _ step: Step, _ view: GraphTwin.Graph) {
    let side = step.context
    switch kind {
    case .toy:
      // A chain: a new toy of a new pet, which has an owner last.
      guard let owner = choose(step.numbers[2], among: view.numbers(.person)),
        let person = sides[side].objects[owner] as? Person
      else { return insert(kind, in: side) }
      let (toy, pet) = (make(.toy), make(.pet))
      (toy.object as? Toy)?.pet = pet.object as? Pet
      if step.numbers[3] % 2 == 0 {
        (pet.object as? Pet)?.owner = person
      } else if let pet = pet.object as? Pet {
        person.pets.append(pet)
      }
      note(pet.number, pet.object, .pet, in: side)
      note(toy.number, toy.object, .toy, in: side)
      sides[side].unsaved.set(toy.number, .pet, to: pet.number, in: store)
      sides[side].unsaved.set(pet.number, .owner, to: owner, in: store)
    case .club:
      let members = some(of: view.numbers(.person), step.numbers[2])
      let club = make(.club)
      (club.object as? Circle)?.people = objects(members, in: side)
      if members.isEmpty { sides[side].context.insert(club.object) }
      note(club.number, club.object, .club, in: side)
      for person in members {
        sides[side].unsaved.set(GraphTwin.Pair(person: person, club: club.number), isJoined: true)
      }
    case .person, .pet, .passport:
      guard let link = Link.of(kind).first,
        let target = choose(step.numbers[2], among: view.numbers(link.target)),
        let other = sides[side].objects[target]
      else { return insert(kind, in: side) }
      let new = make(kind)
      relate(new.object, link, other)
      note(new.number, new.object, kind, in: side)
      sides[side].unsaved.set(new.number, link, to: target, in: store)
    }
  }

  private func setOne(_ step: Step, _ view: GraphTwin.Graph) {
    let side = step.context
    let link = Link.allCases[step.numbers[0] % Link.allCases.count]
    guard let number = choose(step.numbers[1], among: view.numbers(link.source)) else { return }
    var target = choose(step.numbers[2], among: view.numbers(link.target))
    if step.numbers[3] % 4 == 0 { target = nil }
    let object = target.flatMap { sides[side].objects[$0] }
    if link.isUnique, step.numbers[3] % 2 == 0, let person = object as? Person {
      person.passport = sides[side].objects[number] as? Passport
    } else {
      relate(sides[side].objects[number], link, object)
    }
    sides[side].unsaved.set(number, link, to: target, in: store)
  }

  private func setMany(_ step: Step, _ view: GraphTwin.Graph) {
    let side = step.context
    let link = [Link.boss, .owner, .pet][step.numbers[0] % 3]
    guard let number = choose(step.numbers[1], among: view.numbers(link.target)) else { return }
    let chosen = some(of: view.numbers(link.source), step.numbers[2])
    switch link {
    case .boss: (sides[side].objects[number] as? Person)?.staff = objects(chosen, in: side)
    case .owner: (sides[side].objects[number] as? Person)?.pets = objects(chosen, in: side)
    default: (sides[side].objects[number] as? Pet)?.toys = objects(chosen, in: side)
    }
    for other in view.referrers(to: number, by: link) where !chosen.contains(other) {
      sides[side].unsaved.set(other, link, to: nil, in: store)
    }
    for other in chosen where view.nodes[other]?.links[link] != number {
      sides[side].unsaved.set(other, link, to: number, in: store)
    }
  }

  private func append(_ step: Step, _ view: GraphTwin.Graph) {
    let side = step.context
    guard let owner = choose(step.numbers[1], among: view.numbers(.person)),
      let person = sides[side].objects[owner] as? Person
    else { return }
    for place in 0..<(step.numbers[2] % 3) {
      var number = choose(step.numbers[3] + place, among: view.numbers(.pet))
      if step.numbers[0] % 2 == 0 || number == nil {
        let new = make(.pet)
        note(new.number, new.object, .pet, in: side)
        number = new.number
      }
      guard let number, let pet = sides[side].objects[number] as? Pet else { continue }
      person.pets.append(pet)
      sides[side].unsaved.set(number, .owner, to: owner, in: store)
    }
  }

  private func join(_ step: Step, _ view: GraphTwin.Graph) {
    let side = step.context
    let isPerson = step.numbers[0] % 2 == 0
    guard let number = choose(step.numbers[1], among: view.numbers(isPerson ? .person : .club))
    else { return }
    let chosen = some(of: view.numbers(isPerson ? .club : .person), step.numbers[2])
    if isPerson {
      (sides[side].objects[number] as? Person)?.clubs = objects(chosen, in: side)
    } else {
      (sides[side].objects[number] as? Circle)?.people = objects(chosen, in: side)
    }
    for pair in view.pairs where (isPerson ? pair.person : pair.club) == number {
      if !chosen.contains(isPerson ? pair.club : pair.person) {
        sides[side].unsaved.set(pair, isJoined: false)
      }
    }
    for other in chosen {
      let pair = GraphTwin.Pair(
        person: isPerson ? number : other,
        club: isPerson ? other : number
      )
      if !view.pairs.contains(pair) { sides[side].unsaved.set(pair, isJoined: true) }
    }
  }

  private func delete(_ number: Int, in side: Int) {
    guard let object = sides[side].objects[number] else { return }
    sides[side].context.delete(object)
    sides[side].unsaved.delete(number, in: store)
  }

  private func rollback(_ side: Int) {
    sides[side].context.rollback()
    sides[side].unsaved = GraphTwin.Unsaved()
  }

  // MARK: Objects

  private func some(of numbers: [Int], _ seed: Int) -> [Int] {
    var random = SeededGenerator(seed: UInt64(seed))
    return numbers.filter { _ in Int.random(in: 0..<3, using: &random) == 0 }
  }

  private func objects<Model: ManagedObject>(_ numbers: [Int], in side: Int) -> [Model] {
    numbers.compactMap { sides[side].objects[$0] as? Model }
  }

  private func rename(_ object: ManagedObject?, _ name: Int) {
    switch object {
    case let object as Person: object.name = "\(name)"
    case let object as Pet: object.name = "\(name)"
    case let object as Toy: object.name = "\(name)"
    case let object as Passport: object.number = name
    case let object as Circle: object.name = "\(name)"
    default: break
    }
  }

  private func relate(_ object: ManagedObject?, _ link: Link, _ target: ManagedObject?) {
    switch link {
    case .boss: (object as? Person)?.boss = target as? Person
    case .owner: (object as? Pet)?.owner = target as? Person
    case .pet: (object as? Toy)?.pet = target as? Pet
    case .holder: (object as? Passport)?.owner = target as? Person
    }
  }
}

// MARK: - Several contexts

extension GraphTrial {
  /// Brings a context up to date with what others have saved, each in its own way.
  private func catchUp(_ side: Int, _ way: Int) throws {
    guard sides[side].isBehind else { return }
    sides[side].isBehind = false
    sides[side].seen = store
    let context = sides[side].context
    switch side {
    case 0: _ = try context.fetchCount(FetchDescriptor<Circle>())
    case 1:
      context.refreshAllObjects()
      for number in sides[side].unsaved.names.keys {
        sides[side].unsaved.names[number]?.base = nil
      }
      for (number, edits) in sides[side].unsaved.links {
        for link in edits.keys {
          sides[side].unsaved.links[number]?[link]?.base = nil
        }
      }
      for number in sides[side].unsaved.deleted.keys {
        sides[side].unsaved.deleted[number] = .some(nil)
      }
    default: context.mergeChanges(sides[side].changes)
    }
    sides[side].changes = ModelChanges()
    for (number, identifier) in identifiers where store.nodes[number] != nil {
      if sides[side].objects[number] == nil {
        sides[side].objects[number] = try context.existingModel(for: identifier)
      }
    }
    var unsaved = sides[side].unsaved
    // What others have related since to what is deleted here goes with it.
    for number in unsaved.deleted.keys.sorted() where store.nodes[number] != nil {
      unsaved.delete(number, in: store)
    }
    // What was changed here and deleted there cannot be shown in one way only.
    let isLost =
      unsaved.updated.contains { store.nodes[$0] == nil }
      || !unsaved.isSound(in: store)
    if isLost {
      if way % 2 == 0 {
        do {
          try context.save()
          throw Violation(description: "a save of what cannot be saved succeeds")
        } catch let error as BatchError {
          try require([.mergeConflict, .constraint].contains(error.code), "\(error)")
          refusals += 1
        }
      }
      rollback(side)
    }
    for number in sides[side].objects.keys
    where store.nodes[number] == nil && !sides[side].unsaved.inserted.contains(number) {
      sides[side].objects[number] = nil
    }
  }

  private func save(_ side: Int) throws {
    let before = store
    var unsaved = sides[side].unsaved
    var conflicts: [Int] = []
    for (number, edit) in unsaved.names {
      if let base = edit.base, before.nodes[number]?.name != base { conflicts.append(number) }
    }
    for (number, edits) in unsaved.links {
      for (link, edit) in edits {
        if let base = edit.base, before.nodes[number]?.links[link] != base {
          conflicts.append(number)
        }
      }
    }
    // One that lags behind has rows that are not the latest.
    let isBehind = sides[side].isBehind
    let seen = sides[side].seen
    for number in unsaved.updated where isBehind && seen.nodes[number] != before.nodes[number] {
      conflicts.append(number)
    }
    for (number, row) in unsaved.deleted {
      if let row, let now = before.nodes[number], row != now { conflicts.append(number) }
    }
    // What others have related since to what is deleted here goes with it.
    for number in unsaved.deleted.keys.sorted() where before.nodes[number] != nil {
      unsaved.delete(number, in: before)
    }
    let after = unsaved.view(of: before)
    do {
      try sides[side].context.save()
    } catch {
      let isExpected =
        error.code == .mergeConflict && !conflicts.isEmpty
        || error.code == .constraint && !unsaved.isSound(in: before)
        || isBehind && [.mergeConflict, .constraint].contains(error.code)
      try require(isExpected, "the save fails: \(error)")
      refusals += 1
      return rollback(side)
    }
    try require(
      conflicts.isEmpty && unsaved.isSound(in: before),
      "the save should fail: \(conflicts)"
    )
    saves += 1
    store = after
    try settle(side, from: before)
  }

  /// Notes what a save has done, and holds the history and the store to it.
  private func settle(_ side: Int, from before: GraphTwin.Graph) throws {
    var changes = ModelChanges()
    for number in sides[side].unsaved.inserted where store.nodes[number] != nil {
      guard let object = sides[side].objects[number] else { continue }
      identifiers[number] = object.persistentModelID
      changes.inserted.append(object.persistentModelID)
    }
    for (number, identifier) in identifiers {
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

  // MARK: Comparing

  private func require(_ condition: Bool, _ message: @autoclosure () -> String) throws {
    if !condition { throw Violation(description: message()) }
  }

  /// Every change of an attribute or a relationship is in the last transaction of the history, at the
  /// objects that it is about.
  private func compareHistory(from before: GraphTwin.Graph) throws {
    let context = ModelContext(container)
    let changes = try context.fetchHistory(limit: .max).last?.changes ?? []
    var found: Set<String> = []
    for change in changes {
      let key = "\(change.identifier.entityName) \(change.identifier.primaryKey)"
      if change.kind != .update { found.insert("\(key) \(change.kind)") }
      for name in change.updatedAttributes { found.insert("\(key) \(name)") }
    }
    var expected: Set<String> = []
    func expect(_ number: Int, _ what: String) {
      guard let identifier = identifiers[number] else { return }
      expected.insert("\(identifier.entityName) \(identifier.primaryKey) \(what)")
    }
    func expectUpdate(_ number: Int, _ name: String) {
      if before.nodes[number] != nil, store.nodes[number] != nil { expect(number, name) }
    }
    for number in Set(before.nodes.keys).union(store.nodes.keys) {
      let (old, new) = (before.nodes[number], store.nodes[number])
      if old == nil { expect(number, "insert") }
      if new == nil { expect(number, "delete") }
      if old?.name != new?.name {
        expectUpdate(number, (old ?? new)?.kind == .passport ? "number" : "name")
      }
      // A deletion says itself that its relationships end.
      for link in Link.allCases where new != nil && old?.links[link] != new?.links[link] {
        expectUpdate(number, link.names.one)
        for target in [old?.links[link], new?.links[link]] {
          if let target { expectUpdate(target, link.names.many) }
        }
      }
    }
    for pair in before.pairs.symmetricDifference(store.pairs)
    where store.nodes[pair.person] != nil && store.nodes[pair.club] != nil {
      expectUpdate(pair.person, "clubs")
      expectUpdate(pair.club, "people")
    }
    let missing = expected.subtracting(found)
    try require(missing.isEmpty, "the history lacks \(missing.sorted()), has \(found.sorted())")
    let excess = found.filter { $0.hasSuffix("insert") || $0.hasSuffix("delete") }
      .subtracting(expected)
    // What was deleted twice is recorded twice.
    try require(excess.allSatisfy { $0.hasSuffix("delete") }, "the history invents \(excess)")
  }

  /// What a context that has seen nothing yet finds is what was saved.
  private func compareStore() throws {
    let context = ModelContext(container)
    var objects: [Int: ManagedObject] = [:]
    for (number, identifier) in identifiers where store.nodes[number] != nil {
      objects[number] = try context.existingModel(for: identifier)
    }
    try compare(objects, with: store, in: context)
  }

  private func compare(_ side: Int) throws {
    let view = sides[side].unsaved.view(of: store)
    try compare(sides[side].objects, with: view, in: sides[side].context)
  }

  private func compare(
    _ objects: [Int: ManagedObject],
    with view: GraphTwin.Graph,
    in context: ModelContext
  ) throws {
    var numbers: [ObjectIdentifier: Int] = [:]
    for (number, object) in objects { numbers[ObjectIdentifier(object)] = number }
    func number(of object: ManagedObject?) -> Int? {
      object.flatMap { numbers[ObjectIdentifier($0)] }
    }
    func compare(_ found: [ManagedObject], _ expected: [Int], _ what: String) throws {
      let found = found.map { number(of: $0) ?? 0 }.sorted()
      try require(found == expected, "\(what): \(found) instead of \(expected)")
    }
    for kind in Kind.allCases {
      let found: [ManagedObject] =
        switch kind {
        case .person: try context.fetch(FetchDescriptor<Person>())
        case .pet: try context.fetch(FetchDescriptor<Pet>())
        case .toy: try context.fetch(FetchDescriptor<Toy>())
        case .passport: try context.fetch(FetchDescriptor<Passport>())
        case .club: try context.fetch(FetchDescriptor<Circle>())
        }
      try compare(found, view.numbers(kind), "fetched \(kind)")
    }
    for (own, node) in view.nodes {
      for link in Link.of(node.kind) {
        let target: ManagedObject? =
          switch objects[own] {
          case let object as Person: object.boss
          case let object as Pet: object.owner
          case let object as Toy: object.pet
          case let object as Passport: object.owner
          default: nil
          }
        // What others have deleted is found to be gone when it is used.
        if let expected = node.links[link], view.nodes[expected] == nil { continue }
        try require(
          number(of: target) == node.links[link],
          "\(link) of \(own): \(number(of: target) ?? 0) instead of \(node.links[link] ?? 0)"
        )
      }
      switch objects[own] {
      case let object as Person:
        try require(object.name == "\(node.name)", "name of \(own)")
        try compare(object.staff, view.referrers(to: own, by: .boss), "staff of \(own)")
        try compare(object.pets, view.referrers(to: own, by: .owner), "pets of \(own)")
        let passports = view.referrers(to: own, by: .holder)
        if passports.count < 2 {
          try require(number(of: object.passport) == passports.first, "passport of \(own)")
        }
        let clubs = view.pairs.filter { $0.person == own }.map(\.club).sorted()
        try compare(object.clubs, clubs, "clubs of \(own)")
      case let object as Pet:
        try require(object.name == "\(node.name)", "name of \(own)")
        try compare(object.toys, view.referrers(to: own, by: .pet), "toys of \(own)")
      case let object as Toy: try require(object.name == "\(node.name)", "name of \(own)")
      case let object as Passport: try require(object.number == node.name, "number of \(own)")
      case let object as Circle:
        try require(object.name == "\(node.name)", "name of \(own)")
        let people = view.pairs.filter { $0.club == own }.map(\.person).sorted()
        try compare(object.people, people, "people of \(own)")
      default: throw Violation(description: "nobody has \(own)")
      }
    }
    try comparePredicates(view, in: context, compare)
  }

  /// Predicates about related objects, saved or not.
  private func comparePredicates(
    _ view: GraphTwin.Graph,
    in context: ModelContext,
    _ compare: ([ManagedObject], [Int], String) throws -> Void
  ) throws {
    let name = "1"
    func isNamed(_ number: Int?) -> Bool { number.flatMap { view.nodes[$0] }?.name == 1 }
    try compare(
      context.fetch(FetchDescriptor<Pet>(predicate: #Predicate { $0.owner?.name == name })),
      view.numbers(.pet).filter { isNamed(view.nodes[$0]?.links[.owner]) },
      "pets of owners named 1"
    )
    try compare(
      context.fetch(
        FetchDescriptor<Person>(predicate: #Predicate { $0.pets.contains { $0.name == name } })
      ),
      view.numbers(.person).filter { view.referrers(to: $0, by: .owner).contains(where: isNamed) },
      "owners of pets named 1"
    )
    try compare(
      context.fetch(
        FetchDescriptor<Circle>(predicate: #Predicate { $0.people.contains { $0.name == name } })
      ),
      view.numbers(.club).filter { club in
        view.pairs.contains { $0.club == club && isNamed($0.person) }
      },
      "clubs of people named 1"
    )
    // What a getter could not say would be said here.
    _ = try context.fetchCount(FetchDescriptor<Circle>())
  }
}
