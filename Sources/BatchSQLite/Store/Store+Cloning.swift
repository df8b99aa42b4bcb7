import BatchRuns
package import BatchIdentifiers
package import SystemPackage

/// A copy of one snapshot of a database, with the rowids of its rows.
package struct StoreClone: Sendable {
  package enum Method: String, Sendable, Encodable {
    /// Shares the blocks of the file until one of the two files is written.
    case sharedBlocks
    case pages
  }

  package let method: Method
  /// Reveals whether the database has changed since; see ``Connection/dataVersion()``.
  package let version: Int64
}

extension Store {
  /// The size of the database, including its log, in bytes.
  package func byteCount() async throws(BatchError) -> Int64 {
    try await connection(label: "batch.clone").perform { connection throws(BatchError) in
      try connection.byteCount()
    }
  }

  /// A number that changes when another connection commits; for a store that is kept open.
  package func version() async throws(BatchError) -> Int64 {
    try await connection(label: "batch.clone").perform { connection throws(BatchError) in
      try connection.dataVersion()
    }
  }

  /// Copies the database into an empty file; for a store that is kept open.
  ///
  /// Uses one read transaction. With a write-ahead log, others may write meanwhile, and the log
  /// grows. If there is no log, or an empty one, the file alone is the database. A reader then
  /// keeps others from writing to the file, so it can be cloned as it is. Otherwise, its pages are
  /// copied, each from the file or the log.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - cloneFile: Makes a file share another's blocks; false if the file system cannot do that.
  ///   - progress: Called with the number of bytes copied.
  /// - Returns: How the copy was made, and of which version.
  /// - Throws: `BatchError` of code `interrupted` if the task is cancelled, or errors of SQLite.
  package func clone(
    to path: FilePath,
    sharingBlocks cloneFile: @Sendable (_ path: FilePath, _ copy: FilePath) -> Bool,
    progress: @Sendable (Int64) -> Void
  ) async throws(BatchError) -> StoreClone {
    let reader = connection(label: "batch.clone")
    return try await reader.perform { connection throws(BatchError) in
      try connection.transaction(.deferred) { () throws(BatchError) in
        // A deferred transaction begins with its first read.
        _ = try connection.byteCount()
        let version = try connection.dataVersion()
        let log = FileSystem.status(of: FilePath("\(self.path)-wal"))?.size ?? 0
        if log == 0, cloneFile(FilePath(self.path), path) {
          return StoreClone(method: .sharedBlocks, version: version)
        }
        try connection.copy(to: path.string) { bytes throws(BatchError) in
          if Task.isCancelled { throw BatchError(.interrupted, "interrupted", at: self.path) }
          progress(bytes)
        }
        return StoreClone(method: .pages, version: version)
      }
    }
  }
}
