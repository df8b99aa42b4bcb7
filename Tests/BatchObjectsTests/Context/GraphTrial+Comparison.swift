import BatchIdentifiers
import BatchObjects
import BatchTestSupport
import Foundation

/// Holds contexts, the store and its history to what the twin says.
extension GraphTrial {
  func require(_ condition: Bool, _ message: @autoclosure () -> String) throws {
    if !condition { throw Violation(description: message()) }
  }

  /// Every change of an attribute or a relationship is in the last transaction of the history, at the
  /// objects that it is about.
  func compareHistory(from before: GraphTwin.Graph) throws {
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
        let names: [Kind: String] = [.passport: "number", .badge: "label"]
        expectUpdate(number, (old ?? new).flatMap { names[$0.kind] } ?? "name")
      }
      if old?.code != new?.code { expectUpdate(number, "code") }
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

  /// A new context finds what was saved.
  func compareStore() throws {
    let context = ModelContext(container)
    var objects: [Int: ManagedObject] = [:]
    for (number, identifier) in sortedIdentifiers where store.nodes[number] != nil {
      objects[number] = try context.existingModel(for: identifier)
    }
    try compare(objects, with: store, in: context)
  }

  func compare(_ side: Int) throws {
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
        case .badge: try context.fetch(FetchDescriptor<Badge>())
        }
      try compare(found, view.numbers(kind), "fetched \(kind)")
    }
    for (own, node) in view.nodes.sorted(by: { $0.key < $1.key }) {
      for link in Link.of(node.kind) {
        let target: ManagedObject? =
          switch objects[own] {
          case let object as Person: object.boss
          case let object as Pet: object.owner
          case let object as Toy: object.pet
          case let object as Passport: object.owner
          case let object as Badge: object.keeper
          default: nil
          }
        // Objects that others have deleted are found to be gone when used.
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
        try compare(object.badges, view.referrers(to: own, by: .keeper), "badges of \(own)")
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
      case let object as Badge:
        try require(object.label == node.name && object.code == node.code, "badge \(own)")
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
