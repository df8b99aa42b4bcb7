internal import CLZ4

/// LZ4 blocks, by the system's library.
enum LZ4 {
  /// Appends the compressed form of some bytes.
  static func compress(_ bytes: [UInt8], to output: inout [UInt8]) {
    let start = output.count
    let bound = Int(LZ4_compressBound(Int32(bytes.count)))
    output.append(contentsOf: repeatElement(0, count: bound))
    let count = output.withUnsafeMutableBytes { buffer in
      bytes.withUnsafeBytes { source in
        LZ4_compress_default(
          source.bindMemory(to: CChar.self).baseAddress,
          (buffer.baseAddress.unsafelyUnwrapped + start).assumingMemoryBound(to: CChar.self),
          Int32(bytes.count),
          Int32(bound)
        )
      }
    }
    output.removeLast(bound - max(0, Int(count)))
  }

  /// Fills a buffer with what a block holds; false if it does not hold exactly that many bytes.
  static func decompress(
    _ block: UnsafeRawBufferPointer,
    into output: UnsafeMutableRawBufferPointer
  ) -> Bool {
    let count = LZ4_decompress_safe(
      block.bindMemory(to: CChar.self).baseAddress,
      output.bindMemory(to: CChar.self).baseAddress,
      Int32(block.count),
      Int32(output.count)
    )
    return Int(count) == output.count
  }
}
