extension ClosedRange<Int64> {
  /// How far the last integer is from the first, as far as an `Int` can say.
  package var span: Int {
    let (count, overflow) = upperBound.subtractingReportingOverflow(lowerBound)
    return overflow ? .max : Int(count)
  }

  /// Ranges of about the same width that cover this one, in order.
  package func split(into count: Int) -> [ClosedRange<Int64>] {
    // Counted from the lower bound and unsigned, so that no width is too great.
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
