struct UnsavedLinks {
  struct Link {
    let store: Int
    let table: JoinTable
    let source: ManagedObject
    let target: ManagedObject
    /// Whether to join the two objects; otherwise they are parted.
    var isJoined: Bool
  }

  private struct Key: Hashable {
    let store: Int
    let table: JoinTable
    let source: ObjectIdentifier
    let target: ObjectIdentifier
  }

  private var links: [Key: (link: Link, order: Int)] = [:]
  /// The number of pairs set so far.
  private var additions = 0
  private var keys: [ObjectIdentifier: [Key]] = [:]

  var isEmpty: Bool { links.isEmpty }

  /// The pairs of a store, in the order in which they were first set.
  func of(store: Int) -> [Link] {
    links.values.filter { $0.link.store == store }.sorted { $0.order < $1.order }.map(\.link)
  }

  /// The objects that will be joined with one, or parted from it.
  func targets(of source: ManagedObject, in table: JoinTable) -> [(ManagedObject, isJoined: Bool)] {
    (keys[ObjectIdentifier(source)] ?? []).compactMap { key in
      guard let link = links[key]?.link else { return nil }
      if link.table == table, link.source === source { return (link.target, link.isJoined) }
      if link.table == table.reversed, link.target === source {
        return (link.source, link.isJoined)
      }
      return nil
    }
  }

  mutating func set(_ link: Link) {
    // Both sides see the same pair: it is stored from the view of the side whose column sorts
    // first.
    var link = link
    if link.table.source > link.table.target {
      link = Link(
        store: link.store,
        table: link.table.reversed,
        source: link.target,
        target: link.source,
        isJoined: link.isJoined
      )
    }
    let key = Key(
      store: link.store,
      table: link.table,
      source: ObjectIdentifier(link.source),
      target: ObjectIdentifier(link.target)
    )
    if let known = links[key] {
      links[key] = (link, known.order)
      return
    }
    links[key] = (link, additions)
    additions += 1
    keys[key.source, default: []].append(key)
    if key.source != key.target { keys[key.target, default: []].append(key) }
  }

  mutating func remove(of object: ManagedObject) {
    let own = ObjectIdentifier(object)
    for key in keys.removeValue(forKey: own) ?? [] {
      links[key] = nil
      let other = key.source == own ? key.target : key.source
      keys[other]?.removeAll { $0 == key }
      if keys[other]?.isEmpty == true { keys[other] = nil }
    }
  }

  mutating func remove(store: Int) {
    links = links.filter { $0.key.store != store }
    keys = keys.mapValues { $0.filter { $0.store != store } }.filter { !$0.value.isEmpty }
  }
}
