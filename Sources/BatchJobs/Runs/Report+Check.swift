package import BatchIdentifiers
import BatchRuns
import SystemPackage

extension Job.Report {
  /// Marks a file as a report, in either format.
  package static let mark = "batch-report"

  /// Checks that a report can be written, and would replace nothing but another report.
  package func check() throws(BatchError) {
    guard let status = FileSystem.status(of: path) else {
      let folder = path.removingLastComponent()
      guard folder.isEmpty || FileSystem.status(of: folder) != nil else {
        throw BatchError(
          .fileAccess,
          "there is no folder for the report",
          at: path.string,
          remedy: "make it, or name another report.path"
        )
      }
      return
    }
    guard status.type == .regular && status.size == 0 || Self.start(of: path).contains(Self.mark)
    else {
      throw BatchError(
        .outputExists,
        "the file exists and is not a run's report",
        at: path.string,
        remedy: "move it away, or name another report.path"
      )
    }
  }

  private static func start(of path: FilePath) -> String {
    guard let file = try? FileDescriptor.openRegularFile(path, .readOnly) else { return "" }
    defer { try? file.close() }
    return String(decoding: (try? file.read(atMost: 500)) ?? [], as: UTF8.self)
  }
}
