import FoundationEssentials
import SystemPackage

/// Calls `body` with the path of a new folder, and removes it afterwards.
func withTemporaryFolder<Result>(_ body: (FilePath) throws -> Result) throws -> Result {
  let url = FileManager.default.temporaryDirectory.appending(path: "ids-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: url) }
  return try body(FilePath(url.path))
}
