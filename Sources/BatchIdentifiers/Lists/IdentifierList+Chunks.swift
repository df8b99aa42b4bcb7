extension IdentifierList {
  /// Divides the list into parts of a given length; the last part may be shorter.
  ///
  ///     for chunk in identifiers.chunks(ofCount: 1000) {
  ///       let orders = try context.fetch(chunk, as: Order.self)
  ///     }
  ///
  /// - Parameter count: The number of identifiers per part.
  /// - Returns: A collection of slices; nothing is copied or decoded.
  /// - Precondition: `count` is positive.
  public func chunks(ofCount count: Int) -> Chunks {
    precondition(count > 0, "chunks of no identifiers")
    return Chunks(list: self, size: count)
  }

  /// A list in parts of a given length.
  public struct Chunks: RandomAccessCollection, Sendable {
    fileprivate let list: IdentifierList
    fileprivate let size: Int

    /// Always zero.
    public var startIndex: Int { 0 }
    /// The number of parts.
    public var endIndex: Int { list.count / size + (list.count.isMultiple(of: size) ? 0 : 1) }

    /// The part at a position.
    public subscript(position: Int) -> Slice<IdentifierList> {
      precondition(indices.contains(position), "a position out of bounds")
      let start = position * size
      return list[start..<(start + Swift.min(size, list.count - start))]
    }
  }
}
