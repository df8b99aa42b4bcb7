import CZlib
import CZstd

/// Reads compressed files as programs do: frame after frame, with the libraries' own functions.
public enum CompressedText {
  /// A file is not whole.
  public struct Damage: Error {}

  /// The text of a file, and the number of its frames or members; throws unless all of it is whole.
  public static func read(_ file: [UInt8], _ compression: String) throws -> (
    text: [UInt8], frames: Int
  ) {
    var (text, frames, rest) = ([UInt8](), 0, file[...])
    while frames == 0 || !rest.isEmpty {
      let count = compression == "zstd" ? try zstd(rest, &text) : try gzip(rest, &text)
      rest = rest.dropFirst(count)
      frames += 1
    }
    return (text, frames)
  }

  private static func zstd(_ file: ArraySlice<UInt8>, _ text: inout [UInt8]) throws -> Int {
    try file.withUnsafeBytes { source in
      let count = ZSTD_findFrameCompressedSize(source.baseAddress, source.count)
      guard ZSTD_isError(count) == 0 else { throw Damage() }
      let size = Int(ZSTD_getFrameContentSize(source.baseAddress, source.count))
      var isWhole = false
      text += [UInt8](unsafeUninitializedCapacity: size) { target, written in
        written = ZSTD_decompress(target.baseAddress, size, source.baseAddress, count)
        isWhole = written == size
        if !isWhole { written = 0 }
      }
      guard isWhole else { throw Damage() }
      return count
    }
  }

  private static func gzip(_ file: ArraySlice<UInt8>, _ text: inout [UInt8]) throws -> Int {
    let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    stream.initialize(to: z_stream())
    defer { stream.deallocate() }
    // 16 more than the bits of the window: only gzip, and its checksum.
    guard inflateInit2_(stream, 31, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
      throw Damage()
    }
    defer { inflateEnd(stream) }
    return try file.withUnsafeBytes { source in
      let start = source.bindMemory(to: UInt8.self).baseAddress
      stream.pointee.next_in = UnsafeMutablePointer(mutating: start)
      stream.pointee.avail_in = UInt32(source.count)
      var status = Z_OK
      while status == Z_OK {
        text += [UInt8](unsafeUninitializedCapacity: 1 << 16) { target, written in
          stream.pointee.next_out = target.baseAddress
          stream.pointee.avail_out = 1 << 16
          status = inflate(stream, Z_NO_FLUSH)
          written = 1 << 16 - Int(stream.pointee.avail_out)
        }
      }
      guard status == Z_STREAM_END else { throw Damage() }
      return source.count - Int(stream.pointee.avail_in)
    }
  }
}
