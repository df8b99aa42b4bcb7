/// How the keys of one segment are packed.
///
/// The raw values stand in files.
enum SegmentCoding: UInt8, CaseIterable {
  typealias KeyKind = IdentifierList.KeyKind

  /// Equal steps: one number, whatever the count.
  case stride = 1
  /// Runs of consecutive keys: gaps and lengths as Rice codes, whatever the count.
  case runs = 2
  /// Steps as Rice codes.
  case rice = 3
  /// Steps as numbers of equally many bits.
  case packedSteps = 4
  /// A bit for each number that could be a key, by eights in a prefix code.
  case bitmap = 5
  /// Steps as varints, compressed with LZ4.
  case stepsLZ4 = 6
  /// Keys in any order, as numbers of equally many bits above the smallest.
  case packedKeys = 7
  /// Steps of either sign as Rice codes.
  case signedRice = 8
  /// Steps of either sign as varints, compressed with LZ4.
  case signedStepsLZ4 = 9
  /// Encoded keys without what they share with the one before.
  case frontCoded = 16
  /// The same, compressed with LZ4.
  case frontCodedLZ4 = 17
  /// UUIDs, as blobs or as text, in 16 bytes or less.
  case uuids = 18

  /// What kind of keys the coding is for.
  var keyKind: KeyKind { rawValue < 16 ? .integer : .encoded }

  /// How many keys a segment of this coding may hold.
  var maximumCount: Int {
    switch self {
    case .stride, .runs: IdentifierList.maximumCount
    case .rice: Rice.maximumCount
    default: SegmentCoding.plainCount
    }
  }

  /// How many keys most segments hold, unless they are the last.
  static let plainCount = 4096
}
