#if PostgreSQL
import BatchJobs
import BatchRuns
import BatchPlatform

struct TableRequests: RunRequests {
  private let presence: HostPresence
  private var seen: String?

  init(_ presence: HostPresence) {
    self.presence = presence
  }

  mutating func look() -> RunControl? {
    let control = presence.answer?.request
    guard control != seen else { return nil }
    seen = control
    return control.map { RunControl(sharedText: $0) ?? RunControl() } ?? RunControl()
  }

  mutating func takeComplaint() -> String? { nil }
}

extension RunControl {
  /// The request in `_batch_run.control`; nil if it cannot be decoded.
  init?(sharedText text: String) {
    guard let control = try? JSONDecoder().decode(RunControl.self, from: Data(text.utf8)) else {
      return nil
    }
    self = control
  }

  var sharedText: String {
    guard let bytes = try? JSONEncoder().encode(self) else {
      preconditionFailure("a request of texts that cannot be encoded")
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
#endif
