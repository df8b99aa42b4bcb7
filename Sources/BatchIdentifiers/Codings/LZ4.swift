internal import CLZ4

/// LZ4 blocks, through the system's library.
package enum LZ4 {
  package static func compress(_ bytes: [UInt8], to output: inout [UInt8]) {
    let start = output.count
    let bound = Int(LZ4_compressBound(Int32(bytes.count)))
    output.appendZeros(bound)
    // LZ4 reads exactly these bytes and writes at most `bound`, starting at `start`.
    let count = unsafe bytes.withUnsafeBytes { source in
      unsafe output.withUnsafeMutableBytes { target in
        unsafe LZ4_compress_default(
          source.bindMemory(to: CChar.self).baseAddress,
          target[start...].bindMemory(to: CChar.self).baseAddress,
          Int32(source.count),
          Int32(bound)
        )
      }
    }
    output.removeLast(bound - max(0, Int(count)))
  }

  /// The content of a block; nil if it is not exactly `count` bytes.
  package static func decompress(_ block: Span<UInt8>, count: Int) -> [UInt8]? {
    var output = [UInt8](repeating: 0, count: count)
    return decompress(block, into: &output, count: count) ? output : nil
  }

  static func decompress(
    _ block: Span<UInt8>,
    into output: inout [UInt8],
    count: Int
  ) -> Bool {
    precondition(count <= output.count)
    // LZ4 stays within the block and `count`, whatever the block contains.
    let written = unsafe block.withUnsafeBytes { source in
      unsafe output.withUnsafeMutableBytes { target in
        unsafe LZ4_decompress_safe(
          source.bindMemory(to: CChar.self).baseAddress,
          target.bindMemory(to: CChar.self).baseAddress,
          Int32(source.count),
          Int32(count)
        )
      }
    }
    return Int(written) == count
  }
}
