import BatchIdentifiers

package enum CheckpointEntry {
  case progress(RunProgress)
  case failures(FailureRecord)

  package static let progressKind: UInt8 = 1

  package var kind: UInt8 {
    switch self {
    case .progress: Self.progressKind
    case .failures: FailureRecord.kind
    }
  }

  package var payload: [UInt8] {
    get throws(BatchError) {
      switch self {
      case .progress(let progress): try Checkpoint.encode(progress)
      case .failures(let record): try Checkpoint.encode(record)
      }
    }
  }
}
