import BatchIdentifiers

/// What a checkpoint has appended to it.
package enum CheckpointEntry {
  case progress(RunProgress)
  case failures(FailureRecord)

  /// The kind of record that holds a `RunProgress`.
  package static let progressKind: UInt8 = 1

  /// The kind of its record in a file.
  package var kind: UInt8 {
    switch self {
    case .progress: Self.progressKind
    case .failures: FailureRecord.kind
    }
  }

  /// What its record in a file holds.
  package var payload: [UInt8] {
    get throws(BatchError) {
      switch self {
      case .progress(let progress): try Checkpoint.encode(progress)
      case .failures(let record): try Checkpoint.encode(record)
      }
    }
  }
}
