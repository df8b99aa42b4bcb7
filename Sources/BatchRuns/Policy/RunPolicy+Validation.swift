public import BatchIdentifiers
import SystemPackage

/// A setting of a policy that violates a rule.
package struct SettingProblem: Sendable {
  package let path: [String]
  package let message: String
  package let remedy: String?

  package init(_ path: String..., message: String, remedy: String?) {
    self.path = path
    self.message = message
    self.remedy = remedy
  }
}

extension RunPolicy {
  /// The maximum number of identifiers that may fail.
  public static let skipLimit = 100_000
  /// The maximum number of retries per chunk.
  public static let retryLimit = 1000
  package static let leastMaximumWAL: Int64 = 1_000_000
  /// The maximum number of rows per chunk.
  public static let chunkSizeLimit = 1_000_000
  /// The maximum number of workers.
  public static let workerLimit = 256
  /// The maximum of most durations.
  package static let durationLimit = (duration: Duration.seconds(24 * 60 * 60), name: "24 hours")
  package static let longDurationLimit = (
    duration: Duration.seconds(365 * 24 * 60 * 60), name: "365 days"
  )

  /// Checks all settings.
  ///
  /// - Throws: `BatchError` of code `invalidJob` that lists the problems, one per line.
  public func validate() throws(BatchError) {
    let errors = problems().map { problem in
      BatchError(
        .invalidJob,
        problem.message,
        at: problem.path.joined(separator: "."),
        remedy: problem.remedy
      )
    }
    if let error = BatchError.joining(errors) { throw error }
  }

  package func problems() -> [SettingProblem] {
    var problems = chunkProblems()
    if let workers, !(1...Self.workerLimit).contains(workers) {
      problems.append(
        .init(
          "workers",
          message: "is \(workers)",
          remedy: "choose a number from 1 to \(Self.workerLimit)"
        )
      )
    }
    return problems + retryProblems() + skipProblems() + throttleProblems() + timeProblems()
      + historyProblems() + canaryProblems()
  }

  private func chunkProblems() -> [SettingProblem] {
    var problems: [SettingProblem] = []
    let sizes = [("size", chunk.size), ("minimum", chunk.minimum), ("maximum", chunk.maximum)]
    for (key, size) in sizes {
      guard let size else { continue }
      if key != "size", chunk.target == nil {
        problems.append(
          .init(
            "chunk",
            key,
            message: "bounds a target that is not given",
            remedy: "add chunk.target, or remove it"
          )
        )
      } else if !(1...Self.chunkSizeLimit).contains(size) {
        problems.append(
          .init(
            "chunk",
            key,
            message: "is \(size)",
            remedy: "choose a size from 1 to \(Self.chunkSizeLimit)"
          )
        )
      }
    }
    if problems.isEmpty, let minimum = chunk.minimum, let maximum = chunk.maximum,
      minimum > maximum
    {
      problems.append(
        .init(
          "chunk",
          "minimum",
          message: "is \(minimum), more than chunk.maximum, which is \(maximum)",
          remedy: "exchange them"
        )
      )
    }
    if let target = chunk.target { problems += Self.problems(of: target, "chunk", "target") }
    return problems
  }

  private func retryProblems() -> [SettingProblem] {
    var problems: [SettingProblem] = []
    if !(0...Self.retryLimit).contains(retry.limit) {
      problems.append(
        .init(
          "retry",
          "limit",
          message: "is \(retry.limit)",
          remedy: "choose a number from 0 to \(Self.retryLimit)"
        )
      )
    }
    return problems + Self.problems(of: retry.backoff, "retry", "backoff")
      + Self.problems(of: retry.maximumBackoff, "retry", "maximumBackoff")
  }

  private func skipProblems() -> [SettingProblem] {
    var problems: [SettingProblem] = []
    if !(0...Self.skipLimit).contains(skip.limit) {
      problems.append(
        .init(
          "skip",
          "limit",
          message: "is \(skip.limit)",
          remedy: "choose a number from 0 to \(Self.skipLimit)"
        )
      )
    }
    if !(0...1).contains(skip.ratio) {
      problems.append(
        .init(
          "skip",
          "ratio",
          message: "is \(skip.ratio)",
          remedy: "choose a part from 0 to 1"
        )
      )
    }
    return problems
  }

  private func throttleProblems() -> [SettingProblem] {
    var problems: [SettingProblem] = []
    if let rate = throttle.identifiersPerSecond, !(0.001...1e9).contains(rate) {
      problems.append(
        .init(
          "throttle",
          "identifiersPerSecond",
          message: "is \(rate)",
          remedy: "choose a number from 0.001 to 1000000000"
        )
      )
    }
    if let ratio = throttle.sleepRatio, !(0...100).contains(ratio) {
      problems.append(
        .init(
          "throttle",
          "sleepRatio",
          message: "is \(ratio)",
          remedy: "choose a number from 0 to 100"
        )
      )
    }
    if throttle.maximumWAL < Self.leastMaximumWAL {
      problems.append(
        .init(
          "throttle",
          "maximumWAL",
          message: "is \(throttle.maximumWAL) bytes",
          remedy: "choose at least \"1MB\""
        )
      )
    }
    if let file = throttle.flagFile, file.isEmpty {
      problems.append(.init("throttle", "flagFile", message: "is empty", remedy: "give it a value"))
    }
    return problems
  }

  private func timeProblems() -> [SettingProblem] {
    var problems: [SettingProblem] = []
    if let path = checkpoint.path, path.isEmpty {
      problems.append(.init("checkpoint", "path", message: "is empty", remedy: "give it a value"))
    }
    problems += Self.problems(of: checkpoint.interval, "checkpoint", "interval")
    if let duration = checkpoint.keepRunIDs {
      problems += Self.problems(
        of: duration,
        "checkpoint",
        "keepRunIDs",
        longest: Self.longDurationLimit
      )
    }
    if let runtime = limits.runtime {
      problems += Self.problems(
        of: runtime,
        "limits",
        "runtime",
        longest: Self.longDurationLimit
      )
    }
    return problems
  }

  private func historyProblems() -> [SettingProblem] {
    switch history {
    case .runs(let count):
      if (0...History.limit).contains(count) { return [] }
      let remedy = "choose a number from 0 to \(History.limit)"
      return [.init("history", message: "is \(count)", remedy: remedy)]
    case .time(let time):
      if time > .zero, time <= Self.longDurationLimit.duration { return [] }
      let remedy = "write a positive one, \(Self.longDurationLimit.name) at most"
      return [.init("history", message: "is not a positive duration", remedy: remedy)]
    }
  }

  package static func problems(
    of duration: Duration,
    _ section: String,
    _ key: String,
    zeroAllowed: Bool = false,
    longest: (duration: Duration, name: String) = durationLimit
  ) -> [SettingProblem] {
    if duration < .zero || (duration == .zero && !zeroAllowed) {
      return [
        .init(
          section,
          key,
          message: "is not a positive duration",
          remedy: "write one such as \"5s\""
        )
      ]
    }
    if duration > longest.duration {
      return [
        .init(
          section,
          key,
          message: "is too long",
          remedy: "\(longest.name) are the most"
        )
      ]
    }
    return []
  }
}

extension BatchError {
  /// An error that reports the first hundred errors, one per line; nil if there are none.
  package static func joining(_ errors: [BatchError]) -> BatchError? {
    let limit = 100
    guard var first = errors.first else { return nil }
    if errors.count == 1 { return first }
    if let remedy = first.remedy { first.message += "; \(remedy)" }
    for error in errors.dropFirst().prefix(limit - 1) { first.message += "\n\(error)" }
    if errors.count > limit { first.message += "\nand \((errors.count - limit).grouped) more" }
    first.remedy = nil
    return first
  }
}

extension BatchError.Code {
  /// A job, or the policy of a run, violates a rule.
  public static let invalidJob = Self(rawValue: "invalidJob")
}
