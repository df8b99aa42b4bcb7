public import BatchIdentifiers
import SystemPackage

extension Checkpoint {
  /// Refuses a checkpoint if another user has replaced this run's with it.
  ///
  /// A checkpoint determines which rows change, so writing it amounts to the right to run the job.
  package func refuseForeignOwner(of files: RunFiles) throws(BatchError) {
    guard !files.trusts(owner: owner) else { return }
    throw BatchError(
      .otherRun,
      "the checkpoint belongs to user \(owner), who is neither you nor root nor the owner of the"
        + " database",
      at: path.string,
      remedy: "inspect it, then chown it or move it away; name a folder of your own with"
        + " checkpoint.path"
    )
  }
}

extension BatchError.Code {
  /// The checkpoint belongs to another run, job or store.
  public static let otherRun = Self(rawValue: "otherRun")
}
