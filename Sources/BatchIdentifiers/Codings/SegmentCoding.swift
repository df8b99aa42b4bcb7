/// How the keys of one segment are packed.
///
/// The raw values stand in files.
enum SegmentCoding: UInt8, CaseIterable {
  /// Equal steps: one number, whatever the count.
  case stride = 1
  /// Steps as Rice codes.
  case rice = 2
  /// Steps as numbers of equally many bits.
  case packedSteps = 3
  /// Keys in any order, as numbers of equally many bits above the smallest.
  case packedKeys = 4
  /// Encoded keys without what they share with the one before.
  case frontCoded = 16
  /// The same, compressed with LZ4.
  case frontCodedLZ4 = 17

  /// What kind of keys the coding is for.
  var keyKind: IdentifierList.KeyKind { rawValue < 16 ? .integer : .encoded }

  /// How many keys a segment of this coding may hold.
  var maximumCount: Int {
    self == .stride ? IdentifierList.maximumCount : SegmentCoding.plainCount
  }

  /// How many keys every other segment holds, unless it is the last.
  static let plainCount = 1024
}
