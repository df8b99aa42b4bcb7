import BatchIdentifiers

extension Job {
  /// The settings that can be changed while the job runs, by their path in the job file.
  public static let liveSettings = [
    "chunk.size", "chunk.target", "throttle.identifiersPerSecond", "throttle.sleepRatio",
    "throttle.maximumWAL",
  ]

  /// The job with some of its settings replaced; the text `none` takes one away.
  ///
  /// - Throws: `BatchError` of code `invalidJob` if a setting cannot be changed or has a wrong value.
  func adjusted(by settings: [String: String]) throws(BatchError) -> Job {
    var job = self
    for (name, text) in settings {
      let isNone = text == "none"
      do throws(BatchError) {
        switch name {
        case "chunk.size": job.chunk.size = try Self.number(Int(text), text)
        case "chunk.target": job.chunk.target = isNone ? nil : try Duration(parsing: text)
        case "throttle.identifiersPerSecond":
          job.throttle.identifiersPerSecond = isNone ? nil : try Self.number(Double(text), text)
        case "throttle.sleepRatio":
          job.throttle.sleepRatio = isNone ? nil : try Self.number(Double(text), text)
        case "throttle.maximumWAL": job.throttle.maximumWAL = try ByteSize(parsing: text).bytes
        default:
          throw BatchError(
            .invalidJob,
            "cannot be changed in a live run",
            remedy: remedyForUnknownName(name, among: Self.liveSettings, kind: "settings that can")
          )
        }
      } catch {
        throw error.located(at: name)
      }
    }
    // The places of the file are not those of the new values.
    job.origin = nil
    try job.validate()
    return job
  }

  private static func number<Number>(_ number: Number?, _ text: String) throws(BatchError) -> Number
  {
    if let number { return number }
    throw BatchError(.invalidJob, "\(text.quotedForMessage) is not a number", remedy: nil)
  }
}
