/// What a footer says of a column chunk, but its place.
struct ChunkDescription {
  var codec: Int
  /// Of the data pages; a dictionary's own page is PLAIN.
  var encoding: RowGroupOutput.Encoding
  /// Zero without a dictionary.
  var dictionaryByteCount: Int
  var byteCount: Int
  var uncompressedByteCount: Int
  /// As Thrift already.
  var statistics: [UInt8]
}

/// What follows the column chunks of a row group, so that a footer can be written from it later.
///
/// A trailer of fixed size is last: the count of the other bytes with ``magic``, and a hash of all
/// before itself. It leads to the description, and that to the row group before.
struct RowGroupDescription {
  static let trailerByteCount = 16
  /// `BPQ1`, above the count of bytes.
  private static let magic: UInt64 = 0x3151_5042 << 32

  let rowCount: Int
  /// Of the columns for which the row group was written.
  let fingerprint: Int
  var chunks: [ChunkDescription] = []

  init(rowCount: Int, fingerprint: Int) {
    self.rowCount = rowCount
    self.fingerprint = fingerprint
  }

  /// All bytes of the column chunks.
  var chunksByteCount: Int { chunks.reduce(0) { $0 + $1.byteCount } }

  /// Appends the description and the trailer to the column chunks.
  func write(to bytes: inout Store<UInt8>) {
    var own = Store<UInt8>()
    for number in [rowCount, fingerprint, chunks.count] { own.append(varint: UInt64(number)) }
    for chunk in chunks {
      for number in [
        chunk.codec, chunk.encoding.rawValue, chunk.dictionaryByteCount, chunk.byteCount,
        chunk.uncompressedByteCount, chunk.statistics.count,
      ] {
        own.append(varint: UInt64(number))
      }
      own.append(chunk.statistics)
    }
    own.append(littleEndian: UInt64(own.count) | Self.magic)
    own.append(littleEndian: unsafe Words.hash(own.base, own.count))
    bytes.append(own)
  }

  /// How many bytes are before a trailer, or nil if it is none.
  static func byteCount(trailer: [UInt8]) -> Int? {
    guard trailer.count == trailerByteCount else { return nil }
    let word = Words.word(trailer[..<8])
    return word & ~0xFFFF_FFFF == magic ? Int(word & 0xFFFF_FFFF) : nil
  }

  /// Reads it with its trailer; nil if it is damaged.
  init?(_ bytes: [UInt8]) {
    var own = Store<UInt8>()
    own.append(bytes)
    let end = bytes.count - Self.trailerByteCount
    guard end >= 0, unsafe Words.hash(own.base, end + 8) == Words.word(bytes[(end + 8)...])
    else { return nil }

    var position = 0
    func number() -> Int? {
      var value = 0
      for shift in stride(from: 0, to: 63, by: 7) where position < end {
        let byte = bytes[position]
        position += 1
        value |= Int(byte & 0x7F) << shift
        if byte < 0x80 { return value }
      }
      return nil
    }

    // The limits are far above all that exists, and keep sums within their type.
    let limit = 1 << 44
    guard let rowCount = number(), rowCount < limit, let fingerprint = number(),
      let chunkCount = number(), chunkCount <= end
    else { return nil }
    self.init(rowCount: rowCount, fingerprint: fingerprint)
    for _ in 0..<chunkCount {
      guard let codec = number(), let encoding = number().flatMap(RowGroupOutput.Encoding.init),
        let dictionaryByteCount = number(), let byteCount = number(), byteCount < limit,
        let uncompressedByteCount = number(), uncompressedByteCount < limit,
        let statisticsCount = number(), statisticsCount <= end - position,
        dictionaryByteCount <= byteCount
      else { return nil }
      position += statisticsCount
      chunks.append(
        ChunkDescription(
          codec: codec,
          encoding: encoding,
          dictionaryByteCount: dictionaryByteCount,
          byteCount: byteCount,
          uncompressedByteCount: uncompressedByteCount,
          statistics: Array(bytes[position - statisticsCount..<position])
        )
      )
    }
    guard position == end else { return nil }
  }
}
