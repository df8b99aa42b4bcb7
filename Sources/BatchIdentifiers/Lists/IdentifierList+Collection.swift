extension IdentifierList: RandomAccessCollection {
  /// Always zero.
  public var startIndex: Int { 0 }
  /// The number of identifiers.
  public var endIndex: Int { count }

  /// Returns the identifier at a position.
  ///
  /// - Complexity: Decodes one segment; the next look-ups nearby do not.
  public subscript(position: Int) -> PersistentIdentifier {
    do throws(BatchError) {
      return try identifier(at: position)
    } catch {
      unreadable(error)
    }
  }

  /// Makes an iterator that decodes about a thousand identifiers at a time.
  public func makeIterator() -> Iterator { Iterator(self) }

  /// The iterator of a list.
  public struct Iterator: IteratorProtocol, Sendable {
    private let list: IdentifierList
    private var position = 0
    private var bufferStart = 0
    private var integers: [Int64] = []
    private var keys = EncodedKeys()

    fileprivate init(_ list: IdentifierList) {
      self.list = list
    }

    /// Returns the next identifier, or nil at the end of the list.
    public mutating func next() -> PersistentIdentifier? {
      guard position < list.count else { return nil }
      let index = position - bufferStart
      position += 1
      switch list.header.keyKind {
      case .integer:
        if index < integers.count {
          return PersistentIdentifier(domain: list.space.domain, key: .integer(integers[index]))
        }
      case .encoded:
        if index < keys.count { return list.space.identifier(.encoded(keys[index])) }
      }
      position -= 1
      fill()
      return next()
    }

    private mutating func fill() {
      bufferStart = position
      let range = position..<Swift.min(position + SegmentCoding.plainCount * 4, list.count)
      do throws(BatchError) {
        switch list.header.keyKind {
        case .integer:
          integers.removeAll(keepingCapacity: true)
          try list.appendIntegers(in: range, to: &integers)
        case .encoded:
          keys.removeAll()
          try list.appendEncodedKeys(in: range, to: &keys)
        }
      } catch {
        list.unreadable(error)
      }
    }
  }
}

extension IdentifierList: Equatable {
  /// Whether two lists have the same identifiers in the same order.
  ///
  /// - Complexity: O(n) if they have the same names and count, O(1) otherwise.
  public static func == (left: IdentifierList, right: IdentifierList) -> Bool {
    do throws(BatchError) {
      return try left.packed.hasSameKeys(as: right.packed)
    } catch {
      left.unreadable(error)
    }
  }

  /// Returns whether an identifier is in the list.
  ///
  /// - Complexity: O(log n) and one segment if the list is sorted, O(n) if it is not.
  public func contains(_ identifier: PersistentIdentifier) -> Bool {
    guard identifier.space == space, let key = identifier.key else { return false }
    do throws(BatchError) {
      return try contains(key: key)
    } catch {
      unreadable(error)
    }
  }
}

extension IdentifierList {
  /// Returns the same keys as identifiers of another name of the entity: jobs name a table, such as
  /// `orders`, and containers the class of its rows, such as `Order`.
  ///
  /// Containers take both names. Set operations and jobs know no classes.
  ///
  /// - Parameter entityName: The other name. That both name the same rows is not checked.
  /// - Returns: A list that shares the memory of this one.
  /// - Complexity: O(1)
  public func renamed(to entityName: String) -> IdentifierList {
    let header = Header(
      storeIdentifier: header.storeIdentifier,
      entityName: entityName,
      keyKind: header.keyKind
    )
    return IdentifierList(
      inMemory: PackedIdentifiers(
        header: header,
        isSorted: isSorted,
        directory: packed.directory,
        source: packed.source
      )
    )
  }

  /// Stops the program: the keys were packed or checked by this process, so they must be readable.
  fileprivate func unreadable(_ error: BatchError) -> Never {
    preconditionFailure("keys in memory cannot be read: \(error)")
  }
}
