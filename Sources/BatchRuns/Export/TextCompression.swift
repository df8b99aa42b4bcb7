internal import CZlib
internal import CZstd

/// How an export compresses its text.
///
/// A file is a sequence of frames (gzip: members), each compressed alone; readers of both formats
/// give the texts of all frames as one.
public enum TextCompression: String, CaseIterable, Hashable, Sendable {
  /// Not at all.
  case none
  /// The format of RFC 1952, which every program reads.
  case gzip
  /// Zstandard (RFC 8878), which is faster.
  case zstd

  /// What is added to the name of a file.
  package var suffix: String {
    switch self {
    case .none: ""
    case .gzip: ".gz"
    case .zstd: ".zst"
    }
  }

  /// The format of a compressed file; nil for plain lines.
  package var format: GroupFormat? { self == .none ? nil : .lines(self) }

  /// What a file begins with before any row.
  package func header(_ line: [UInt8]) -> [UInt8] { line.isEmpty ? [] : frame(of: line) }

  /// What a file has for a text: the same bytes for the same text.
  package func frame(of text: [UInt8]) -> [UInt8] {
    switch self {
    case .none: text
    case .gzip where text.count > Self.memberLimit:
      stride(from: 0, to: text.count, by: Self.memberLimit).flatMap {
        Self.gzip(Array(text[$0..<min($0 + Self.memberLimit, text.count)]))
      }
    case .gzip: Self.gzip(text)
    case .zstd: Self.zstd(text)
    }
  }

  /// zlib counts in 32 bits, and a row may have more bytes.
  private static let memberLimit = 1 << 30

  // A level more than these costs more time than space on rows of text.

  private static func gzip(_ text: [UInt8]) -> [UInt8] {
    var stream = unsafe z_stream()
    // The stream keeps its own address.
    return unsafe withUnsafeMutablePointer(to: &stream) { stream in
      // 16 more than the bits of the window asks for the header of gzip.
      let size = unsafe Int32(MemoryLayout<z_stream>.size)
      var status = unsafe deflateInit2_(
        stream,
        4,
        Z_DEFLATED,
        15 + 16,
        8,
        Z_DEFAULT_STRATEGY,
        ZLIB_VERSION,
        size
      )
      precondition(status == Z_OK, "there is no memory to compress")
      defer { _ = unsafe deflateEnd(stream) }
      let limit = unsafe Int(deflateBound(stream, UInt(text.count)))
      return unsafe text.withUnsafeBufferPointer { source in
        unsafe [UInt8](unsafeUninitializedCapacity: limit) { target, count in
          unsafe stream.pointee.next_in = UnsafeMutablePointer(mutating: source.baseAddress)
          unsafe stream.pointee.avail_in = UInt32(source.count)
          unsafe stream.pointee.next_out = target.baseAddress
          unsafe stream.pointee.avail_out = UInt32(limit)
          status = unsafe deflate(stream, Z_FINISH)
          precondition(status == Z_STREAM_END, "zlib has not ended a text")
          count = unsafe limit - Int(stream.pointee.avail_out)
        }
      }
    }
  }

  private static func zstd(_ text: [UInt8]) -> [UInt8] {
    let context = unsafe ZSTD_createCCtx()
    defer { _ = unsafe ZSTD_freeCCtx(context) }
    _ = unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 1)
    _ = unsafe ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)
    let limit = ZSTD_compressBound(text.count)
    return unsafe text.withUnsafeBytes { source in
      unsafe [UInt8](unsafeUninitializedCapacity: limit) { target, count in
        count = unsafe ZSTD_compress2(
          context,
          target.baseAddress,
          limit,
          source.baseAddress,
          source.count
        )
        precondition(ZSTD_isError(count) == 0, "there is no memory to compress")
      }
    }
  }
}
