internal import CLZ4

/// How pages are compressed.
public enum ParquetCompression: String, Sendable, CaseIterable {
  /// Not at all.
  case none
  /// Snappy, which every reader knows.
  case snappy
  /// LZ4 without any frame, which Parquet calls LZ4_RAW.
  case lz4
}

extension ParquetCompression {
  /// `CompressionCodec` of parquet.thrift.
  var codec: Int {
    switch self {
    case .none: 0
    case .snappy: 1
    case .lz4: 7
    }
  }

  func compress(_ page: borrowing Store<UInt8>, to target: inout Store<UInt8>) {
    // C's functions count in 32 bits, which pages stay far below.
    precondition(page.count < 0x7E00_0000)
    switch self {
    case .none: target.append(page)
    case .snappy: Snappy.compress(page, to: &target)
    case .lz4:
      let limit = LZ4_compressBound(Int32(page.count))
      unsafe target.append(atMost: Int(limit)) { place in
        let source = unsafe UnsafeRawPointer(page.base).assumingMemoryBound(to: CChar.self)
        let start = unsafe UnsafeMutableRawPointer(place).assumingMemoryBound(to: CChar.self)
        return Int(unsafe LZ4_compress_default(source, start, Int32(page.count), limit))
      }
    }
  }
}
