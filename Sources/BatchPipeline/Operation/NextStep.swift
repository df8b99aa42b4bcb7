import BatchSQLite

/// What `batch run` would do now, given what is on disk.
public struct NextStep: Sendable, Encodable {
  /// In a word: `begin`, `resume`, `acknowledge`, `acknowledgeAndBegin`, `nothing`, or `refuse`.
  public let name: String
  /// In a clause, with the reason if the run would be refused.
  public let words: String

  init(_ name: String, _ words: String) { (self.name, self.words) = (name, words) }

  /// A run that would be refused.
  init(refusing reason: String) { self.init("refuse", "refuses: \(reason)") }

  /// Decides as a run would; writes nothing.
  ///
  /// - Parameters:
  ///   - job: The job.
  ///   - options: What may differ from one run to the next. If a parameter is missing, they are not compared
  ///     with those of an unfinished run.
  ///   - handlers: Handlers that the `handler` of a transform may name. Without the job's, whether the job fits
  ///     its database is not checked.
  public init(
    of job: Job,
    options: BatchRun.Options = .init(),
    handlers: [String: TransformHandler] = [:]
  ) async {
    self = await job.records.nextStep(options, handlers)
  }
}
