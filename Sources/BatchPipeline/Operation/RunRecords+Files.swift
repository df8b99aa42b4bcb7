import BatchIdentifiers
import BatchJobs
import BatchRuns
import SystemPackage

extension ProgramWork {
  package var records: any RunRecords { FileRecords(of: self) }
}

extension FilePath {
  /// The records of the runs of a job file, or of the checkpoint of a program's own run.
  ///
  /// - Throws: `BatchError` if the job file is not valid; of code `damagedFile` if the file is
  ///   neither, of code `invalidJob` if it is the checkpoint of a job with a job file.
  package func records() throws(BatchError) -> any RunRecords {
    if self.extension == "undo", FileSystem.status(of: self) == nil {
      // An undo on a server has no file; its name stands for it.
      var file = self
      file.extension = "json"
      if FileSystem.status(of: file) != nil { return try Job(contentsOf: file).undoRecords }
    }
    guard !Job.isJobFile(self), FileSystem.status(of: self)?.type == .regular else {
      return try Job(contentsOf: self).records
    }
    return try ProgramWork(ofRunAt: self).records
  }
}
