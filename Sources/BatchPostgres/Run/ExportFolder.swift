#if PostgreSQL
import BatchJobs
import BatchRuns
import BatchIdentifiers
import BatchPlatform
import SystemPackage

/// The folder of an export that hosts share: the parts, and the manifest that names them.
///
/// Each host has its own folder, or all share one.
struct ExportFolder: Sendable {
  private static let manifestName = "manifest.json"

  let path: FilePath
  let permissions: FilePermissions

  private var manifest: FilePath { path.appending(Self.manifestName) }

  private struct Manifest: Decodable {
    let job: String
    let run: String
  }

  private func existing() -> Manifest? {
    guard let bytes = FileManager.default.contents(atPath: manifest.string) else { return nil }
    return try? JSONDecoder().decode(Manifest.self, from: bytes)
  }

  func refuse(unlessFor job: Job, overwriting overwrites: Bool) throws(BatchError) {
    switch FileSystem.kind(of: path) {
    case .nothing: return
    case .folder: break
    case .file, .link, .other:
      throw BatchError(
        .outputExists,
        "this is not a folder",
        at: path.string,
        remedy: "name a new folder, or one of an earlier run of this job"
      )
    }
    guard !overwrites, FileSystem.status(of: manifest) != nil, existing()?.job != job.name else {
      return
    }
    throw BatchError(
      .outputExists,
      "the folder has an export that this job did not make",
      at: manifest.string,
      advice: "move it away, name another folder, or set \(.overwrite) to true"
    )
  }

  func make() throws(BatchError) {
    try FileSystem.makeFolder(path, permissions: FilePermissions(rawValue: 0o777))
  }

  /// Begins a part, which gets its name when it is published.
  func makeFile(named name: String) throws(BatchError) -> NewFile {
    try NewFile(for: path.appending(name), permissions: permissions)
  }

  /// Refuses to publish parts that were changed after they were written here.
  ///
  /// Processes that share a folder remove files that are not in their export. If they use two
  /// servers that both act as the primary, they remove files of each other's export.
  func require(_ parts: [ExportPart]) throws(BatchError) {
    for part in parts {
      let file = path.appending(part.file)
      guard FileSystem.status(of: file)?.size != Int64(part.bytes) else { continue }
      throw BatchError(
        .damagedFile,
        "this file of the export is gone, or not as it was written",
        at: file.string,
        advice: "find out who uses the folder, then \(.beginAnew)"
      )
    }
  }

  private func remove(_ name: String) {
    try? FileSystem.remove(path.appending(name))
  }

  /// Publishes the manifest, and removes files of the previous export and of hosts that have lost
  /// their spans; may be repeated, and called by every host.
  func publish(
    _ bytes: [UInt8],
    naming parts: [ExportPart],
    ofRun run: String
  ) throws(BatchError) {
    let earlier = existing()
    try NewFile.write(bytes, to: manifest, permissions: permissions)
    let named = Set(parts.map(\.file))
    let own = ExportParts.prefix(ofRun: run)
    let old = earlier.map { ExportParts.prefix(ofRun: $0.run) }
    for name in (try? FileManager.default.contentsOfDirectory(atPath: path.string)) ?? [] {
      // Another live process may be writing a file of this run that has no name yet.
      let isOfOwn = name.hasPrefix(own)
      let isOfOld = old.map { $0 != own && (name.hasPrefix($0) || name.hasPrefix(".\($0)")) }
      if (isOfOwn || isOfOld == true) && !named.contains(name) { remove(name) }
    }
  }
}
#endif
