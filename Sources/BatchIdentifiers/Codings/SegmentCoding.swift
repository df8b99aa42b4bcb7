/// How the keys of one segment are packed; the raw values are written to files.
enum SegmentCoding: UInt8, CaseIterable {
  typealias KeyKind = IdentifierList.KeyKind

  /// Equal steps: one number, whatever the count.
  case stride = 1
  /// Runs of consecutive keys: gaps and lengths as Rice codes, whatever the count.
  case runs = 2
  /// Steps as Rice codes.
  case rice = 3
  /// Steps as numbers of a fixed width.
  case packedSteps = 4
  /// A bit for each possible key, in groups of eight by a prefix code.
  case bitmap = 5
  /// Steps as varints, compressed with LZ4.
  case stepsLZ4 = 6
  /// Keys in any order, as differences of a fixed width from the smallest.
  case packedKeys = 7
  /// Steps of either sign as Rice codes.
  case signedRice = 8
  /// Steps of either sign as varints, compressed with LZ4.
  case signedStepsLZ4 = 9
  /// Encoded keys without the bytes that they share with the previous key.
  case frontCoded = 16
  /// `frontCoded`, compressed with LZ4.
  case frontCodedLZ4 = 17
  /// UUIDs, as blobs or as text, in 16 bytes or less.
  case uuids = 18

  var keyKind: KeyKind { rawValue < 16 ? .integer : .encoded }

  var maximumCount: Int {
    switch self {
    case .stride, .runs: IdentifierList.maximumCount
    case .rice: Rice.maximumCount
    default: SegmentCoding.plainCount
    }
  }

  /// The number of keys in most segments except the last.
  static let plainCount = 4096
}
