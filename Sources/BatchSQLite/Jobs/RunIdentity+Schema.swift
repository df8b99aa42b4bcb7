package import BatchJobs

extension RunIdentity {
  /// What the run requires of the schema; nil for a run that begins now, and for one that may
  /// concern rows of several entities.
  package var expected: ExpectedSchema? { ExpectedSchema(recorded: schema) }
}
