import Foundation

/// The checkout that the tests were built from.
public enum Repository {
  /// Its folder.
  public static let path = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path

  /// The text of a file.
  public static func text(_ name: String) throws -> String {
    try String(contentsOfFile: "\(path)/\(name)", encoding: .utf8)
  }

  /// The names of the files below a folder that have an extension, from the root of the checkout.
  public static func files(under folder: String, extension suffix: String) throws -> [String] {
    let names = try FileManager.default.subpathsOfDirectory(atPath: "\(path)/\(folder)")
    return names.filter { $0.hasSuffix(".\(suffix)") }.map { "\(folder)/\($0)" }.sorted()
  }
}
