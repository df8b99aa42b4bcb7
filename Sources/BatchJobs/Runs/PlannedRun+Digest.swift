package import BatchRuns
package import BatchIdentifiers

extension PlannedRun {
  /// What a run of some work is going to do.
  ///
  /// Two runs with the same digest execute the same statements, with the same parameters, on the same
  /// rows of the same schema, in chunks of the same size and under the same throttle.
  ///
  /// - Parameters:
  ///   - cause: The work.
  ///   - policy: The policy of the run, including the options of its command.
  ///   - statements: The statements that it executes.
  ///   - fingerprint: The fingerprint of the work and its parameters.
  ///   - subject: The rows and the schema; see ``subject(_:_:)``.
  package init(
    of cause: any RunCause,
    _ policy: RunPolicy,
    _ statements: [String],
    _ fingerprint: String,
    over subject: String
  ) {
    let settings = policy.liveValues.map { ($0.name, CanonicalJSON.string($0.value)) }
    var members: [String: CanonicalJSON] = [
      "fingerprint": .string(fingerprint),
      "statements": CanonicalJSON(statements),
      "subject": .string(subject),
      "settings": .object(Dictionary(settings) { first, _ in first }),
      "skip": .string("\(policy.skip.limit) \(policy.skip.ratio)"),
      "hooks": .object(
        Dictionary(
          uniqueKeysWithValues: cause.hooks.commands.map { ($0.rawValue, CanonicalJSON($1)) }
        )
      ),
      "canary": .string(
        policy.canary.map { "\($0.rows) \($0.wait.text) \($0.stopAfter ?? 1)" } ?? ""
      ),
    ]
    // What plans had before these settings stays their digest.
    if cause.recheck != .row { members["recheck"] = .string(cause.recheck.rawValue) }
    if let afterwards = cause.afterwards { members["afterwards"] = .string(afterwards.rawValue) }
    self.init(
      digest: SHA256.hash(CanonicalJSON.object(members).text),
      subject: subject,
      approvals: cause.approval?.by ?? 0
    )
  }

  /// The number of rows, and the SHA-256 of their keys in the order of the list and of the schema.
  package static func subject(
    _ list: PackedIdentifiers,
    _ schema: [String]
  ) throws(BatchError) -> String {
    var hash = SHA256()
    for fact in schema {
      hash.add(fact.utf8)
      hash.add([0])
    }
    for start in stride(from: 0, to: list.count, by: 65_536) {
      let range = start..<min(start + 65_536, list.count)
      switch list.header.keyKind {
      case .integer:
        for key in try list.integers(in: range) {
          hash.add((0..<8).map { UInt8(truncatingIfNeeded: key >> (8 * $0)) })
        }
      case .encoded:
        for key in try list.encodedKeys(in: range) {
          hash.add(key.bytes)
          hash.add([0])
        }
      }
    }
    return "\(list.count) \(hash.finish())"
  }
}

extension RunMetadata {
  /// Notes the plan of a run that begins, if somebody must approve it or has named it.
  ///
  /// - Throws: `BatchError` of code `planChanged` if it is not the plan that the options name.
  package mutating func notePlan(
    of cause: any RunCause,
    _ options: RunOptions,
    _ policy: RunPolicy,
    _ statements: [String],
    over list: PackedIdentifiers,
    _ schema: [String]
  ) throws(BatchError) {
    guard cause.approval != nil || options.plan != nil else { return }
    let subject = try PlannedRun.subject(list, schema)
    let planned = PlannedRun(of: cause, policy, statements, fingerprint, over: subject)
    if let name = options.plan, !planned.isNamed(by: name) {
      throw BatchError(
        .planChanged,
        "the plan is not \(name) but \(planned.digest), for \(list.count.grouped) \(list.count == 1 ? "row" : "rows")",
        remedy:
          "look at it again with batch plan: rows, job, parameters, schema or settings have changed"
      )
    }
    self.planned = planned
  }

  /// Refuses to go on with a run whose canary the work no longer has, which would touch other rows before
  /// the canary is over.
  private func refuse(unlessCanaryIsThatOf cause: any RunCause, at place: String) throws(BatchError)
  {
    guard let canary, cause.canaryRows.map(canary.admits) != true else { return }
    throw BatchError(
      .otherRun,
      "the run began with a canary of \(canary.count.grouped) rows and then \(canary.then.quotedForMessage), and the job"
        + " has another or none",
      at: place,
      remedy: "change it back; batch resume ends the wait, and --fresh sets the run aside"
    )
  }

  /// Refuses to go on with a run whose plan is no longer the one that was noted.
  ///
  /// - Throws: `BatchError` of code `planChanged`.
  package func refuse(
    unlessPlanned cause: any RunCause,
    _ options: RunOptions,
    _ policy: RunPolicy,
    _ statements: [String],
    at place: String
  ) throws(BatchError) {
    try refuse(unlessCanaryIsThatOf: cause, at: place)
    guard let planned else {
      guard let name = options.plan else { return }
      throw BatchError(
        .planChanged,
        "the unfinished run began without a plan, and is not \(name)",
        at: place,
        remedy: "finish it without --plan, or run with --fresh to set the run aside"
      )
    }
    let now = PlannedRun(of: cause, policy, statements, fingerprint, over: planned.subject)
    guard now.digest == planned.digest, now.approvals == planned.approvals,
      options.plan.map(planned.isNamed) ?? true
    else {
      throw BatchError(
        .planChanged,
        "what the run would do is no longer the plan \(planned.short) of its beginning: statements,"
          + " triggers, hooks or settings have changed, or another plan was named",
        at: place,
        remedy: "change them back, or run with --fresh to plan again"
      )
    }
  }
}
