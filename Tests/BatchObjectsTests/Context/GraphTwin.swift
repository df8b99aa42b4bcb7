import BatchIdentifiers
import BatchObjects
import BatchSQLite

/// A naive graph of people, pets, toys, passports, clubs and badges: what a store has, and what contexts
/// make of it before they save.
enum GraphTwin {
  enum Kind: Int, CaseIterable { case person, pet, toy, passport, club, badge }

  /// A relationship to one, by what its column refers to.
  enum Link: String, CaseIterable {
    case boss, owner, pet, holder, keeper

    var source: Kind {
      switch self {
      case .boss: .person
      case .owner: .pet
      case .pet: .toy
      case .holder: .passport
      case .keeper: .badge
      }
    }
    var target: Kind { self == .pet ? .pet : .person }
    /// Whether what refers goes with what it refers to.
    var cascades: Bool { self == .owner || self == .pet }
    /// Whether what is referred to cannot be deleted.
    var denies: Bool { self == .keeper }
    /// Whether only one refers to each.
    var isUnique: Bool { self == .holder }
    /// The names of both sides.
    var names: (one: String, many: String) {
      switch self {
      case .boss: ("boss", "staff")
      case .owner: ("owner", "pets")
      case .pet: ("pet", "toys")
      case .holder: ("owner", "passport")
      case .keeper: ("keeper", "badges")
      }
    }

    static func of(_ kind: Kind) -> [Link] { allCases.filter { $0.source == kind } }
  }

  struct Node: Equatable {
    let kind: Kind
    var name = 0
    /// Of a badge: no two have the same in a store.
    var code: Int?
    var links: [Link: Int] = [:]
  }

  struct Pair: Hashable {
    let person: Int
    let club: Int
  }

  struct Graph: Equatable {
    var nodes: [Int: Node] = [:]
    var pairs: Set<Pair> = []

    func numbers(_ kind: Kind) -> [Int] {
      nodes.filter { $0.value.kind == kind }.keys.sorted()
    }

    /// What refers to an object.
    func referrers(to number: Int, by link: Link) -> [Int] {
      nodes.filter { $0.value.links[link] == number }.keys.sorted()
    }

    mutating func remove(_ number: Int) {
      nodes[number] = nil
      pairs = pairs.filter { $0.person != number && $0.club != number }
    }

    /// Whether foreign keys and unique indexes admit it.
    var isSound: Bool {
      for link in Link.allCases {
        let targets = nodes.values.compactMap { $0.links[link] }
        if targets.contains(where: { nodes[$0] == nil }) { return false }
        if link.isUnique, Set(targets).count < targets.count { return false }
      }
      let codes = nodes.values.compactMap(\.code)
      return Set(codes).count == codes.count
        && pairs.allSatisfy { nodes[$0.person] != nil && nodes[$0.club] != nil }
    }
  }

  /// The set value, and the value before; nil for one that is no longer checked.
  struct Edit<Value: Equatable> {
    var value: Value
    var base: Value?
  }

  /// What a context has unsaved.
  struct Unsaved {
    var inserted: Set<Int> = []
    /// New objects as they are, and no others.
    var new = Graph()
    /// Which values of new objects were set.
    var named: Set<Int> = []
    var linked: [Int: Set<Link>] = [:]
    var names: [Int: Edit<Int>] = [:]
    var codes: [Int: Edit<Int>] = [:]
    var links: [Int: [Link: Edit<Int?>]] = [:]
    /// Deleted rows as they were read; nil for those that were not.
    var deleted: [Int: Node?] = [:]
    var pairs: [Pair: Bool] = [:]

    var isEmpty: Bool {
      inserted.isEmpty && updated.isEmpty && deleted.isEmpty && pairs.isEmpty
    }

    var updated: Set<Int> { Set(names.keys).union(codes.keys).union(links.keys) }

    /// What the context shows of a store.
    func view(of store: Graph) -> Graph {
      var graph = store
      graph.nodes.merge(new.nodes) { $1 }
      for (number, edit) in names { graph.nodes[number]?.name = edit.value }
      for (number, edit) in codes { graph.nodes[number]?.code = edit.value }
      for (number, edits) in links {
        for (link, edit) in edits { graph.nodes[number]?.links[link] = edit.value }
      }
      for (pair, isJoined) in pairs {
        if isJoined { graph.pairs.insert(pair) } else { graph.pairs.remove(pair) }
      }
      for number in deleted.keys { graph.remove(number) }
      graph.pairs = graph.pairs.filter {
        graph.nodes[$0.person] != nil && graph.nodes[$0.club] != nil
      }
      return graph
    }

    /// The state of a store after a save, and which new objects become others; or why the store
    /// refuses it.
    func outcome(in store: Graph) -> (graph: Graph, aliases: [Int: Int], refusal: BatchError.Code?)
    {
      let view = view(of: store)
      let written = view.nodes.filter { inserted.contains($0.key) || updated.contains($0.key) }
      if written.values.contains(where: { $0.kind == .badge && $0.name < 0 }) {
        return (store, [:], .validationFailed)
      }
      let isDenied = view.nodes.values.contains { node in
        node.links.contains { link, target in link.denies && deleted[target] != nil }
      }
      if isDenied { return (store, [:], .deleteDenied) }
      var merged = self
      let aliases = merged.merge(in: store)
      let graph = merged.view(of: store)
      let isSound =
        graph.isSound
        && pairs.allSatisfy { pair, isJoined in
          [pair.person, pair.club].allSatisfy {
            !isJoined || store.nodes[$0] != nil || new.nodes[$0] != nil || deleted[$0] != nil
          }
        }
      return (graph, aliases, isSound ? nil : .constraint)
    }

    /// Turns new objects with an existing code into those that have it.
    private mutating func merge(in store: Graph) -> [Int: Int] {
      var aliases: [Int: Int] = [:]
      for number in inserted.sorted() {
        guard let node = new.nodes[number], let code = node.code else { continue }
        let changed = codes.filter { $0.value.value == code }.keys.max()
        let earlier = inserted.filter { $0 < number && new.nodes[$0]?.code == code }.max()
        let stored = store.nodes.first { other, row in
          row.code == code && deleted[other] == nil && codes[other] == nil
        }?.key
        guard let owner = earlier ?? changed ?? stored else { continue }
        aliases[number] = owner
        if named.contains(number) { set(owner, name: node.name, in: store) }
        for link in linked[number] ?? [] { set(owner, link, to: node.links[link], in: store) }
        inserted.remove(number)
        new.remove(number)
      }
      return aliases
    }

    mutating func set(_ number: Int, name: Int, in store: Graph) {
      if inserted.contains(number) {
        new.nodes[number]?.name = name
        named.insert(number)
      } else if let stored = store.nodes[number] {
        let base = names[number].map(\.base) ?? stored.name
        names[number] = stored.name == name ? nil : Edit(value: name, base: base)
      }
    }

    mutating func set(_ number: Int, code: Int, in store: Graph) {
      if inserted.contains(number) {
        new.nodes[number]?.code = code
      } else if let stored = store.nodes[number], let old = stored.code {
        let base = codes[number].map(\.base) ?? old
        codes[number] = old == code ? nil : Edit(value: code, base: base)
      }
    }

    mutating func set(_ number: Int, _ link: Link, to target: Int?, in store: Graph) {
      if link.isUnique, let target {
        for other in view(of: store).referrers(to: target, by: link) where other != number {
          set(other, link, to: nil, in: store)
        }
      }
      if inserted.contains(number) {
        new.nodes[number]?.links[link] = target
        linked[number, default: []].insert(link)
      } else if let stored = store.nodes[number] {
        let old = links[number]?[link]
        let base = old.map(\.base) ?? stored.links[link]
        let isSame = stored.links[link] == target
        links[number, default: [:]][link] = isSame ? nil : Edit(value: target, base: base)
        if links[number]?.isEmpty == true { links[number] = nil }
      }
    }

    /// Ends checks of a row's state at the time when something was set on it.
    mutating func dropBases(of number: Int) {
      names[number]?.base = nil
      codes[number]?.base = nil
      for link in (links[number] ?? [:]).keys { links[number]?[link]?.base = nil }
    }

    /// Forgets the values set on a row, except the pairs that it is in.
    mutating func refresh(_ number: Int) {
      names[number] = nil
      codes[number] = nil
      links[number] = nil
    }

    mutating func set(_ pair: Pair, isJoined: Bool) { pairs[pair] = isJoined }

    /// Deletes an object, with what rules say.
    mutating func delete(_ number: Int, in store: Graph) {
      if inserted.contains(number) { return forget(number, in: store) }
      var doomed = [number]
      var new: [Int] = []
      while let next = doomed.popLast() {
        let view = view(of: store)
        guard view.nodes[next] != nil || next == number else { continue }
        for link in Link.allCases where !link.denies {
          for other in view.referrers(to: next, by: link) {
            if link.cascades { doomed.append(other) } else { set(other, link, to: nil, in: store) }
          }
        }
        if inserted.contains(next) {
          new.append(next)
          inserted.remove(next)
          self.new.remove(next)
          pairs = pairs.filter { $0.key.person != next && $0.key.club != next }
        } else if let row = store.nodes[next] {
          deleted[next] = .some(read(row, of: next))
          refresh(next)
        }
      }
    }

    /// A row as the context has read it, which is older where something was set before others
    /// changed it.
    private func read(_ row: Node, of number: Int) -> Node {
      var row = row
      if let base = names[number]?.base { row.name = base }
      if let base = codes[number]?.base { row.code = base }
      for (link, edit) in links[number] ?? [:] {
        if let base = edit.base { row.links[link] = base }
      }
      return row
    }

    /// Forgets a new object; what referred to it refers to nothing.
    private mutating func forget(_ number: Int, in store: Graph) {
      for link in Link.allCases {
        for other in view(of: store).referrers(to: number, by: link) {
          if inserted.contains(other) {
            new.nodes[other]?.links[link] = nil
          } else {
            links[other]?[link]?.value = nil
          }
        }
      }
      inserted.remove(number)
      new.remove(number)
      pairs = pairs.filter { $0.key.person != number && $0.key.club != number }
    }
  }
}
