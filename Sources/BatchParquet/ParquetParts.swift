/// The parts of a Parquet file with the rows of a sequence, as they are encoded: about a row group each, and the footer
/// last.
///
/// A row is read only when a part is asked for. The sequence ends after an error, of the rows or of ``ParquetWriter``; the
/// parts so far are no whole file then.
///
///     for try await part in try ParquetParts(of: rows, columns: columns) { try await upload(part) }
public struct ParquetParts<Rows: AsyncSequence>: AsyncSequence
where Rows.Element == [ParquetValue] {
  private let rows: Rows
  private let columns: [ParquetColumn]
  private let compression: ParquetCompression
  private let groupByteCount: Int

  /// Makes the parts.
  ///
  /// - Parameters:
  ///   - rows: The rows.
  ///   - columns: The columns, at least one, with different names.
  ///   - compression: How pages are compressed.
  ///   - groupByteCount: How many bytes of values are in a part, about.
  public init(
    of rows: Rows,
    columns: [ParquetColumn],
    compression: ParquetCompression = .snappy,
    groupByteCount: Int = 8 << 20
  ) {
    (self.rows, self.columns) = (rows, columns)
    (self.compression, self.groupByteCount) = (compression, groupByteCount)
  }

  /// Reads the rows, and encodes them.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate final class State {
      var writer: ParquetWriter?

      init(_ writer: consuming ParquetWriter) { self.writer = consume writer }
    }

    private let parts: ParquetParts
    private var rows: Rows.AsyncIterator
    private var state: State?
    private var isOver = false

    fileprivate init(_ parts: ParquetParts) {
      self.parts = parts
      rows = parts.rows.makeAsyncIterator()
    }

    /// The next part; nil after the footer, and after an error.
    ///
    /// - Returns: The bytes.
    /// - Throws: What the rows throw, or ``ParquetError``.
    public mutating func next() async throws -> [UInt8]? { try await next(isolation: nil) }

    /// The next part; nil after the footer, and after an error.
    ///
    /// - Parameter actor: The actor that reads the rows.
    /// - Returns: The bytes.
    /// - Throws: What the rows throw, or ``ParquetError``.
    public mutating func next(isolation actor: isolated (any Actor)?) async throws -> [UInt8]? {
      if isOver { return nil }
      isOver = true
      if state == nil {
        state = State(
          try ParquetWriter(
            columns: parts.columns,
            compression: parts.compression,
            groupByteCount: parts.groupByteCount
          )
        )
      }
      while let row = try await rows.next(isolation: actor) {
        try state?.writer?.append(row)
        let bytes = state?.writer?.takeBytes() ?? []
        if bytes.isEmpty { continue }
        isOver = false
        return bytes
      }
      return try state?.writer.take()?.finish()
    }
  }

  /// Makes an iterator over the parts, which reads the rows from the first one.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}
