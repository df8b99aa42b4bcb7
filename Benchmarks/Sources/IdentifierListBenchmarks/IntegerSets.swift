import Foundation

/// Sets of integers from a file: one per line, separated by commas.
struct IntegerSets {
  let name: String
  let sets: [[Int64]]

  init(path: String) throws {
    name = String(path.split(separator: "/").last ?? "").replacing(".txt", with: "")
      .replacing(".gz", with: "")
    let bytes = try Self.contents(of: path)
    var sets: [[Int64]] = []
    var set: [Int64] = []
    var number: Int64?
    for byte in bytes + [10] {
      switch byte {
      case 48...57:
        number = (number ?? 0) * 10 + Int64(byte - 48)
      default:
        if let found = number { set.append(found) }
        number = nil
        if byte == 10, !set.isEmpty {
          sets.append(set)
          set = []
        }
      }
    }
    self.sets = sets
  }

  private static func contents(of path: String) throws -> [UInt8] {
    guard path.hasSuffix(".gz") else {
      return [UInt8](try Data(contentsOf: URL(filePath: path)))
    }
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["gzip", "-dc", path]
    let pipe = Pipe()
    process.standardOutput = pipe
    try process.run()
    let data = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return [UInt8](data)
  }
}
