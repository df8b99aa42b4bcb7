import BatchIdentifiers

/// What a run has given back after its last chunk.
public struct ReturnedSpace: Hashable, Sendable, Codable {
  /// How: `vacuum` or `incremental`.
  public let by: String
  /// The size of the database's file before, in bytes.
  public let bytesBefore: Int64
  /// The size after that; nil until it is done, or if it failed.
  public internal(set) var bytesAfter: Int64?
  /// Why it failed, on one line.
  public internal(set) var error: String?

  init(by name: String, from bytes: Int64) { (by, bytesBefore) = (name, bytes) }

  /// How it ended, in words.
  package var words: String {
    let before = "\(ByteSize(bytes: bytesBefore)) before"
    if let bytesAfter { return "\(before), \(ByteSize(bytes: bytesAfter)) after" }
    return error.map { "failed: \($0)" } ?? "\(before), not done yet"
  }
}
