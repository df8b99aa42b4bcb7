import BatchRuns
import BatchPlatform
package import SystemPackage

extension Checkpoint {
  package static func runsSetAside(of path: FilePath) -> Set<String> {
    Set(filesSetAside(of: path).compactMap { try? Checkpoint(reading: $0).metadata.run })
  }

  /// The files beside a checkpoint that ``setAside(_:)`` may have created from it, in order.
  package static func filesSetAside(of path: FilePath) -> [FilePath] {
    let folder = path.removingLastComponent()
    let prefix = "\(path.stem ?? "checkpoint")."
    let suffix = ".\(path.extension ?? "batch")"
    let names = try? FileManager.default.contentsOfDirectory(
      atPath: folder.isEmpty ? "." : folder.string
    )
    let numbers = (names ?? []).compactMap { name -> Int? in
      guard name.hasPrefix(prefix), name.hasSuffix(suffix), name.count > prefix.count + suffix.count
      else { return nil }
      let middle = name.dropFirst(prefix.count).dropLast(suffix.count)
      return middle.allSatisfy { ("0"..."9").contains($0) } ? Int(middle) : nil
    }
    return numbers.sorted().map { folder.appending("\(prefix)\($0)\(suffix)") }
  }
}
