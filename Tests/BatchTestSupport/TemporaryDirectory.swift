public import Foundation

/// A folder of a test's own, removed with the last reference to it.
public final class TemporaryDirectory: Sendable {
  /// The absolute path.
  public let path: String

  /// Makes the folder.
  public init() throws {
    let url = FileManager.default.temporaryDirectory
      .appendingPathComponent("batch-tests-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    path = url.resolvingSymlinksInPath().path
  }

  deinit {
    try? FileManager.default.removeItem(atPath: path)
  }

  /// The path of a file in the folder.
  public func file(_ name: String) -> String { "\(path)/\(name)" }

  /// Writes a file.
  ///
  /// - Returns: Its path.
  @discardableResult
  public func write(_ text: String, to name: String) throws -> String {
    try Data(text.utf8).write(to: URL(fileURLWithPath: file(name)))
    return file(name)
  }

  /// The content of a file.
  public func read(_ name: String) throws -> [UInt8] {
    try [UInt8](Data(contentsOf: URL(fileURLWithPath: file(name))))
  }

  /// The names of the files, sorted.
  public func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path).sorted()
  }

  /// The paths of the files in one of its folders, and in the folders in that.
  public func files(in folder: String) throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: file(folder)).filter { name in
      var isFolder: ObjCBool = false
      _ = FileManager.default.fileExists(atPath: file("\(folder)/\(name)"), isDirectory: &isFolder)
      return !isFolder.boolValue
    }
  }

  /// The content of every file in the folder and in the folders in it, by path.
  ///
  /// `Data`, of which two are compared at once and not byte by byte: this is done around every command
  /// that has to leave a folder as it was.
  public func contents() throws -> [String: Data] {
    var contents: [String: Data] = [:]
    for name in try FileManager.default.subpathsOfDirectory(atPath: path) {
      var isFolder: ObjCBool = false
      guard FileManager.default.fileExists(atPath: file(name), isDirectory: &isFolder) else {
        continue
      }
      contents[name] =
        isFolder.boolValue ? Data() : try Data(contentsOf: URL(fileURLWithPath: file(name)))
    }
    return contents
  }

  /// The paths of the files that are not as they were, or were not there, or are there no more.
  public func changes(since before: [String: Data]) throws -> [String] {
    let now = try contents()
    return Set(before.keys).union(now.keys).filter { before[$0] != now[$0] }.sorted()
  }
}
