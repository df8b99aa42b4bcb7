import BatchIdentifiers
import BatchObjects
import BatchSQLite
import BatchTestSupport
import Foundation

/// Contexts of one store, and a naive twin with the expected results.
final class GraphTrial {
  typealias Kind = GraphTwin.Kind
  typealias Link = GraphTwin.Link

  /// How what is shown differs from what the twin says.
  struct Violation: Error, CustomStringConvertible {
    let description: String
  }

  struct Side {
    let context: ModelContext
    var objects: [Int: ManagedObject] = [:]
    var unsaved = GraphTwin.Unsaved()
    /// Whether others have saved something since it was brought up to date.
    var isBehind = false
    /// The saves with which it was updated.
    var seen = GraphTwin.Graph()
    /// The saves of others since.
    var changes = ModelChanges()
  }

  private let directory: TemporaryDirectory
  let container: ModelContainer
  var sides: [Side]
  var store = GraphTwin.Graph()
  var identifiers: [Int: PersistentIdentifier] = [:]
  /// They in one order, so that a seed does the same in every process.
  var sortedIdentifiers: [(key: Int, value: PersistentIdentifier)] {
    identifiers.sorted { $0.key < $1.key }
  }
  var last = 0
  /// How many saves were done, how many were refused and why, and how many objects became others by them.
  var tally: [String: Int] = [:]

  init(_ place: Family.Place) async throws {
    directory = try TemporaryDirectory()
    container = try await Family.open(place, in: directory, rows: "", tracksHistory: true)
    sides = []
    for _ in 0..<3 { sides.append(Side(context: ModelContext(container))) }
    sides[0].context.automaticallyMergesChangesFromParent = true
  }

  /// Does one step, and checks what its context then shows.
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
    case .upsert: upsert(step, view)
    case .rename:
      guard let number else { break }
      let name = kind == .badge && step.numbers[3] % 8 == 0 ? -1 : step.numbers[2] % 5
      rename(sides[step.context].objects[number], name)
      sides[step.context].unsaved.set(number, name: name, in: store)
    case .recode: recode(step, view)
    case .swap: swap(step, view)
    case .setOne: setOne(step, view)
    case .setMany: setMany(step, view)
    case .append: append(step, view)
    case .join: join(step, view)
    case .delete:
      guard let number else { break }
      delete(number, in: step.context)
    case .deleteAndKeep:
      guard let number, !sides[step.context].unsaved.inserted.contains(number),
        let object = sides[step.context].objects[number],
        // A refreshed passport may leave a person with two, of whom keeping that person keeps one.
        view.referrers(to: number, by: .holder).count < 2
      else { break }
      let context = sides[step.context].context
      context.delete(object)
      if step.numbers[2] % 2 == 0 { _ = try context.fetchCount(FetchDescriptor<Pet>()) }
      context.insert(object)
    case .refresh:
      guard let number, !sides[step.context].unsaved.inserted.contains(number),
        let object = sides[step.context].objects[number]
      else { break }
      let keeps = step.numbers[2] % 2 == 0
      sides[step.context].context.refresh(object, mergeChanges: keeps)
      if keeps {
        sides[step.context].unsaved.dropBases(of: number)
      } else {
        sides[step.context].unsaved.refresh(number)
      }
    case .forget: try forget(step.context, step.numbers[2])
    case .reset:
      sides[step.context].context.reset()
      sides[step.context].unsaved = GraphTwin.Unsaved()
      try forget(step.context, step.numbers[2])
    case .rollback: rollback(step.context)
    case .save: try save(step)
    case .look:
      var descriptor = FetchDescriptor<Person>()
      descriptor.relationshipKeyPathsForPrefetching = [\.pets, \.boss, \.clubs, \.badges]
      _ = try sides[step.context].context.fetch(descriptor)
    }
    if !sides[step.context].isBehind { try compare(step.context) }
  }

  private func choose(_ number: Int, among numbers: [Int]) -> Int? {
    numbers.isEmpty ? nil : numbers[number % numbers.count]
  }

  // MARK: Steps

  /// A new badge's unique code is above this.
  private static let firstCode = 1_000

  private func make(_ kind: Kind) -> (number: Int, object: ManagedObject) {
    last += 1
    switch kind {
    case .person: return (last, Person("0"))
    case .pet: return (last, Pet("0"))
    case .toy: return (last, Toy("0"))
    case .passport: return (last, Passport(0))
    case .club: return (last, Circle("0"))
    case .badge: return (last, Badge(Self.firstCode + last))
    }
  }

  private func note(_ number: Int, _ object: ManagedObject, _ kind: Kind, in side: Int) {
    sides[side].objects[number] = object
    sides[side].unsaved.inserted.insert(number)
    sides[side].unsaved.new.nodes[number] = GraphTwin.Node(
      kind: kind,
      code: (object as? Badge)?.code
    )
  }

  private func insert(_ kind: Kind, in side: Int) {
    let (number, object) = make(kind)
    sides[side].context.insert(object)
    note(number, object, kind, in: side)
  }

  /// Inserts new objects into the context through their relationships.
  private func insertRelated(_ kind: Kind, _ step: Step, _ view: GraphTwin.Graph) {
    let side = step.context
    switch kind {
    case .toy:
      // A chain: a new toy of a new pet, which gets an owner last.
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
    case .person, .pet, .passport, .badge:
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

  /// Inserts a new badge into the context, whose code another one may have.
  private func upsert(_ step: GraphTrial.Step, _ view: GraphTwin.Graph) {
    let side = step.context
    let badge = Badge(step.numbers[1] % 6)
    last += 1
    let number = last
    sides[side].context.insert(badge)
    note(number, badge, .badge, in: side)
    if step.numbers[0] % 2 == 0 {
      badge.label = step.numbers[0] % 5
      sides[side].unsaved.set(number, name: step.numbers[0] % 5, in: store)
    }
    if step.numbers[2] % 3 > 0 {
      let person = choose(step.numbers[3], among: view.numbers(.person))
      let keeper = step.numbers[2] % 3 == 1 ? person : nil
      badge.keeper = keeper.flatMap { sides[side].objects[$0] as? Person }
      sides[side].unsaved.set(number, .keeper, to: keeper, in: store)
    }
  }

  private func recode(_ step: GraphTrial.Step, _ view: GraphTwin.Graph) {
    let side = step.context
    guard let number = choose(step.numbers[1], among: view.numbers(.badge)) else { return }
    set(number, code: step.numbers[2] % 12, in: side)
  }

  /// Makes two badges exchange their codes.
  private func swap(_ step: GraphTrial.Step, _ view: GraphTwin.Graph) {
    guard let one = choose(step.numbers[1], among: view.numbers(.badge)),
      let other = choose(step.numbers[2], among: view.numbers(.badge)), one != other,
      let first = view.nodes[one]?.code, let second = view.nodes[other]?.code
    else { return }
    set(one, code: second, in: step.context)
    set(other, code: first, in: step.context)
  }

  private func set(_ number: Int, code: Int, in side: Int) {
    (sides[side].objects[number] as? Badge)?.code = code
    sides[side].unsaved.set(number, code: code, in: store)
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
    let link = [Link.boss, .owner, .pet, .keeper][step.numbers[0] % 4]
    guard let number = choose(step.numbers[1], among: view.numbers(link.target)) else { return }
    let chosen = some(of: view.numbers(link.source), step.numbers[2])
    switch link {
    case .boss: (sides[side].objects[number] as? Person)?.staff = objects(chosen, in: side)
    case .owner: (sides[side].objects[number] as? Person)?.pets = objects(chosen, in: side)
    case .keeper: (sides[side].objects[number] as? Person)?.badges = objects(chosen, in: side)
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
    // An object that was never read has nothing to compare when its deletion is saved.
    _ = try? object.committedValues()
    sides[side].context.delete(object)
    sides[side].unsaved.delete(number, in: store)
  }

  /// Lets go of all objects that the context does not keep itself, and takes them from it again.
  private func forget(_ side: Int, _ way: Int) throws {
    let context = sides[side].context
    sides[side].objects = sides[side].objects.filter {
      sides[side].unsaved.inserted.contains($0.key)
    }
    for (number, identifier) in sortedIdentifiers where store.nodes[number] != nil {
      sides[side].objects[number] =
        way % 2 == 0
        ? context.model(for: identifier) : try context.existingModel(for: identifier)
    }
  }

  func rollback(_ side: Int) {
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
    case let object as Badge: object.label = name
    default: break
    }
  }

  private func relate(_ object: ManagedObject?, _ link: Link, _ target: ManagedObject?) {
    switch link {
    case .boss: (object as? Person)?.boss = target as? Person
    case .owner: (object as? Pet)?.owner = target as? Person
    case .pet: (object as? Toy)?.pet = target as? Pet
    case .holder: (object as? Passport)?.owner = target as? Person
    case .keeper: (object as? Badge)?.keeper = target as? Person
    }
  }
}
