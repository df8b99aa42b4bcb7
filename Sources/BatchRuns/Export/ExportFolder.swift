package import BatchIdentifiers
import BatchPlatform
package import SystemPackage

/// The folder of an export in parts, and the manifest that names them.
///
/// Hosts that share a run have a folder each, or all share one.
package struct ExportFolder: Sendable {
  private static let manifestName = "manifest.json"

  let path: FilePath
  let permissions: FilePermissions

  package init(path: FilePath, permissions: FilePermissions) {
    (self.path, self.permissions) = (path, permissions)
  }

  private var manifest: FilePath { path.appending(Self.manifestName) }

  private struct Manifest: Decodable {
    let job: String
    let run: String
  }

  private func existing() -> Manifest? {
    guard let bytes = FileManager.default.contents(atPath: manifest.string) else { return nil }
    return try? JSONDecoder().decode(Manifest.self, from: bytes)
  }

  /// The run whose files the manifest names; nil if there is no manifest, or one that cannot be read.
  package var publishedRun: String? { existing()?.run }

  /// Refuses a folder with an export that is not the caller's, unless it may be overwritten.
  package func refuse(
    overwriting overwrites: Bool,
    unless isOwn: (_ job: String, _ run: String) -> Bool
  ) throws(BatchError) {
    switch FileSystem.kind(of: path) {
    case .nothing: return
    case .folder: break
    case .file, .link, .other:
      let isLink = FileSystem.kind(of: path) == .link
      throw BatchError(
        .outputExists,
        isLink
          ? "this is a symbolic link, which an export does not follow" : "this is not a folder",
        at: path.string,
        remedy: "name a new folder, or one of an earlier run of this job"
      )
    }
    guard !overwrites, FileSystem.status(of: manifest) != nil,
      existing().map({ isOwn($0.job, $0.run) }) != true
    else { return }
    throw BatchError(
      .outputExists,
      "the folder has an export that this job did not make",
      at: manifest.string,
      advice: "move it away, name another folder, or set \(.overwrite) to true"
    )
  }

  package func make() throws(BatchError) {
    try FileSystem.makeFolder(path, permissions: FilePermissions(rawValue: 0o777))
  }

  /// Begins a part, which gets its name when it is published.
  package func makeFile(named name: String) throws(BatchError) -> NewFile {
    try NewFile(for: path.appending(name), permissions: permissions)
  }

  /// Refuses to publish parts that were changed after they were written here.
  ///
  /// Processes that share a folder remove files that are not in their export. If they use two
  /// servers that both act as the primary, they remove files of each other's export.
  package func require(_ parts: [ExportPart]) throws(BatchError) {
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

  /// Why a file of an unfinished export differs from what was written; nil if none does.
  package func loss(of parts: [ExportPart], _ current: ExportPart) -> String? {
    for part in parts + [current] {
      let size = FileSystem.status(of: path.appending(part.file))?.size ?? -1
      let isWhole = part == current ? size >= part.bytes : size == part.bytes
      if !isWhole { return "\(path.appending(part.file).string) is gone, or not as it was written" }
    }
    return nil
  }

  /// Removes the files of a run, unless the manifest names the run.
  ///
  /// - Parameters:
  ///   - run: The run.
  ///   - others: Files that stay.
  /// - Returns: The removed files.
  @discardableResult
  package func removeParts(ofRun run: String, but others: Set<String>) -> [FilePath] {
    if existing()?.run == run { return [] }
    let names = (try? FileManager.default.contentsOfDirectory(atPath: path.string)) ?? []
    let removed = names.filter {
      $0.hasPrefix(ExportPart.prefix(ofRun: run)) && !others.contains($0)
    }
    for name in removed { remove(name) }
    return removed.map { path.appending($0) }
  }

  private func remove(_ name: String) {
    try? FileSystem.remove(path.appending(name))
  }

  /// Refuses to replace a manifest that appeared while the job ran.
  func refuse(unlessReplacing runs: [String], _ run: String) throws(BatchError) {
    guard FileSystem.status(of: manifest) != nil,
      publishedRun.map({ $0 == run || runs.contains($0) }) != true
    else { return }
    throw BatchError(
      .outputExists,
      "another export was written to the folder while the job ran",
      at: manifest.string,
      remedy: "move it away and run again: the files of this one are complete"
    )
  }

  /// Publishes the manifest, and removes files of the previous export and of hosts that have lost
  /// their spans; may be repeated, and called by every host.
  ///
  /// `replaced` are earlier runs of a job that only this process runs; nil if hosts share the folder.
  package func publish(
    _ parts: [ExportPart],
    ofRun run: String,
    _ form: ExportForm,
    replacing replaced: [String]? = nil
  ) throws(BatchError) {
    let earlier = Set((replaced ?? []) + [publishedRun].compactMap(\.self)).subtracting([run])
    let bytes = form.manifest(ofRun: run, parts)
    try NewFile.write(bytes, to: manifest, permissions: permissions)
    let named = Set(parts.map(\.file))
    let own = ExportPart.prefix(ofRun: run)
    let old = earlier.map(ExportPart.prefix)
    for name in (try? FileManager.default.contentsOfDirectory(atPath: path.string)) ?? [] {
      // Another live process may be writing a file of this run that has no name yet.
      let isOfOwn = name.hasPrefix(own)
      let isOfOld = old.contains { name.hasPrefix($0) || name.hasPrefix(".\($0)") }
      let isLeft = replaced != nil && name.hasPrefix(".\(Self.manifestName).")
      if isLeft || (isOfOwn || isOfOld) && !named.contains(name) { remove(name) }
    }
  }
}
