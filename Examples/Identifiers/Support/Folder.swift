import Foundation

/// A folder for the files of one example.
struct Folder: Sendable {
  let path: String

  /// Makes an empty one among the temporary files.
  init() throws {
    let url = FileManager.default.temporaryDirectory.appending(path: "example-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    path = url.path
  }

  func file(_ name: String) -> String { "\(path)/\(name)" }

  func remove() throws {
    try FileManager.default.removeItem(atPath: path)
  }
}
