/// The results of a fetch, as identifiers that become elements one batch at a time: SwiftData's
/// `FetchResultsCollection`.
///
/// Only the most recently used batch keeps its objects, so memory is limited to a batch, however
/// you traverse the collection. The collection has the results of the fetch; later changes of rows
/// are visible in the objects. An object whose row was deleted is a fault, and using it is an error
/// as with any fault. After the context was reset, objects are created again.
///
/// Like the context, the collection belongs to one task or actor, and it keeps the context alive.
/// Like the context, it belongs to one task or actor, and it keeps the context alive.
public struct FetchResultsCollection<Element>: RandomAccessCollection {
  private final class Batch {
    let elements: (Range<Int>) -> [Element]
    /// How often the context has forgotten its objects by now.
    let resets: () -> Int
    var madeAfterResets = 0
    var range = 0..<0
    var current: [Element] = []

    init(_ elements: @escaping (Range<Int>) -> [Element], resets: @escaping () -> Int) {
      self.elements = elements
      self.resets = resets
    }
  }

  /// The number of elements created at once.
  public let batchSize: Int
  /// Always zero.
  public let startIndex = 0
  /// The number of elements.
  public let endIndex: Int

  private let batch: Batch

  init(
    count: Int,
    batchSize: Int,
    resets: @escaping () -> Int,
    _ elements: @escaping (Range<Int>) -> [Element]
  ) {
    endIndex = count
    self.batchSize = batchSize
    batch = Batch(elements, resets: resets)
  }

  /// Returns the element at a position.
  ///
  /// - Complexity: One statement if the position is not in the last batch.
  public subscript(position: Int) -> Element {
    precondition(indices.contains(position), "a position out of bounds")
    let resets = batch.resets()
    if !batch.range.contains(position) || batch.madeAfterResets != resets {
      let start = position / batchSize * batchSize
      // Releases the old batch before the new one is created.
      batch.current = []
      batch.range = start..<Swift.min(start + batchSize, count)
      batch.current = batch.elements(batch.range)
      batch.madeAfterResets = resets
    }
    return batch.current[position - batch.range.lowerBound]
  }
}

@available(*, unavailable, message: "send identifiers")
extension FetchResultsCollection: Sendable {}
