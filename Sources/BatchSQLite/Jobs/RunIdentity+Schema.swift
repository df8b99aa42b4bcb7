package import BatchJobs

extension RunIdentity {
  /// What the run depends on of the schema; nil for a run that begins now, and for one that rows of several entities may
  /// concern.
  package var expected: ExpectedSchema? { ExpectedSchema(recorded: schema) }
}
