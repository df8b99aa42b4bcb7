extension ClosedRange<Int64> {
  /// The distance from the first integer to the last, or `Int.max` if it is greater.
  package var span: Int {
    let (count, overflow) = upperBound.subtractingReportingOverflow(lowerBound)
    return overflow ? .max : Int(count)
  }

  /// Ranges of about equal width that cover this range, in order.
  package func split(into count: Int) -> [ClosedRange<Int64>] {
    // Unsigned and relative to the lower bound, so that no width overflows.
    let width = UInt64(bitPattern: upperBound &- lowerBound)
    guard count > 1 else { return [self] }
    let step = width / UInt64(count) + 1
    return (0..<UInt64(count)).compactMap { index in
      let (start, overflow) = index.multipliedReportingOverflow(by: step)
      guard !overflow, start <= width else { return nil }
      let end = start + Swift.min(step - 1, width - start)
      return (lowerBound &+ Int64(bitPattern: start))...(lowerBound &+ Int64(bitPattern: end))
    }
  }
}
