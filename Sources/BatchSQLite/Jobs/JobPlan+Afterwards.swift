import BatchIdentifiers
import BatchJobs
import BatchRuns

extension Job {
  /// Refuses to cut free pages off a file that keeps no account of where its pages belong.
  func refuseAfterwards(in connection: Connection) throws(BatchError) {
    guard afterwards == .incremental, try !connection.space().isIncremental else { return }
    throw BatchError(
      .invalidJob,
      "incremental needs a database with auto_vacuum = incremental",
      at: place(of: JobPath("afterwards")),
      remedy: "write vacuum, or once: PRAGMA auto_vacuum = incremental; VACUUM"
    )
  }
}

extension JobPlan {
  func afterwards(in connection: Connection) throws(BatchError) -> PlanReport.Afterwards? {
    guard let kind = job.afterwards else { return nil }
    let space = try connection.space()
    return PlanReport.Afterwards(
      by: kind.rawValue,
      bytes: space.byteCount,
      freeBytes: space.freeByteCount,
      neededBytes: kind == .vacuum ? space.byteCount * 2 - space.freeByteCount : nil
    )
  }

  func warningsAboutAfterwards(in connection: Connection) throws(BatchError) -> [String] {
    guard job.afterwards == .vacuum else { return [] }
    var warnings: [String] = []
    if let shortage = try connection.shortageForVacuum() { warnings.append(shortage) }
    let movable = store.schema.entities.filter { $0.mayMoveRowIDs }.map(\.name.quotedForMessage)
    if !movable.isEmpty {
      warnings.append(
        "VACUUM may change the rowids of \(movable.sorted().prefix(5).joined(separator: ", ")): a program that"
          + " keeps them would find other rows; the records of batch have keys instead"
      )
    }
    return warnings
  }
}

extension Entity {
  /// Whether VACUUM may give its rows other rowids.
  fileprivate var mayMoveRowIDs: Bool {
    kind == .table && key?.isRowID != true && (key == nil || key?.rowIDName != nil)
  }
}
