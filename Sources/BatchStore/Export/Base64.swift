/// The encoding of RFC 4648 §4, with padding, for blobs in text.
struct Base64 {
  private static let digits = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
  )

  /// Appends the text that stands for some bytes.
  static func append(_ bytes: UnsafeRawBufferPointer, to text: inout [UInt8]) {
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let count = min(3, bytes.count - start)
      var group: UInt32 = 0
      for offset in 0..<3 {
        group = group << 8 | (offset < count ? UInt32(unsafe bytes[start + offset]) : 0)
      }
      for digit in 0..<4 {
        text.append(
          digit <= count
            ? digits[Int(group >> (18 - 6 * UInt32(digit)) & 63)] : UInt8(ascii: "=")
        )
      }
    }
  }
}
