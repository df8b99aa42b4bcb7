import BatchIdentifiers
import BatchJobs
import BatchRuns
import SystemPackage

extension ProgramWork {
  /// The records of its runs.
  package var records: any RunRecords { FileRecords(of: self) }
}

extension FilePath {
  /// The records of the runs of a job file, or of the checkpoint that a program's own run left.
  ///
  /// - Returns: The records.
  /// - Throws: `BatchError` of a job file that is not valid; `damagedFile` for a file that is neither, `invalidJob` for the
  ///   checkpoint of a job with a job file.
  package func records() throws(BatchError) -> any RunRecords {
    guard !Job.isJobFile(self), FileSystem.status(of: self)?.type == .regular else {
      return try Job(contentsOf: self).records
    }
    return try ProgramWork(ofRunAt: self).records
  }
}
