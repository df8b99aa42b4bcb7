extension Array where Element: BitwiseCopyable {
  /// `withUnsafeBytes`, with the type of what `body` throws kept.
  @inline(__always)
  func withRawBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try span.withUnsafeBytes(body)
  }

  /// `withUnsafeMutableBytes`, with the type of what `body` throws kept.
  @inline(__always)
  mutating func withMutableRawBytes<Result, Failure: Error>(
    _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    var span = mutableSpan
    return try span.withUnsafeMutableBytes(body)
  }

  /// `withUnsafeMutableBufferPointer`, with the type of what `body` throws kept.
  @inline(__always)
  mutating func withMutableElements<Result, Failure: Error>(
    _ body: (UnsafeMutableBufferPointer<Element>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    var span = mutableSpan
    return try span.withUnsafeMutableBufferPointer(body)
  }
}
