import BatchIdentifiers

/// Values for some columns of an entity, by position.
///
/// Usually there are only a few, so a dictionary would cost more: it hashes and allocates.
struct SlotValues<Value> {
  private var elements: [(slot: Int, value: Value)] = []

  var isEmpty: Bool { elements.isEmpty }
  var slots: [Int] { elements.map(\.slot) }

  /// Takes O(log *n*) to read, and O(*n*) to set the first time.
  subscript(_ slot: Int) -> Value? {
    get {
      if elements.isEmpty { return nil }
      let index = index(of: slot)
      return index < elements.count && elements[index].slot == slot ? elements[index].value : nil
    }
    set {
      let index = index(of: slot)
      let isThere = index < elements.count && elements[index].slot == slot
      switch (newValue, isThere) {
      case (let value?, true): elements[index].value = value
      case (let value?, false): elements.insert((slot, value), at: index)
      case (nil, true): elements.remove(at: index)
      case (nil, false): break
      }
    }
  }

  /// The index of the first element whose slot is not smaller.
  private func index(of slot: Int) -> Int {
    elements.partitioningIndex { $0.slot >= slot }
  }
}

extension SlotValues: Sequence {
  func makeIterator() -> IndexingIterator<[(slot: Int, value: Value)]> { elements.makeIterator() }
}
