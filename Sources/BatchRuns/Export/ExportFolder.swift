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

  /// Makes the folder of a partition, which may be there.
  func makePartition(_ partition: String) throws(BatchError) -> FilePath {
    var folder = path
    for component in partition.split(separator: "/") {
      folder.append(String(component))
      let isNew = FileSystem.kind(of: folder) == .nothing
      try FileSystem.makeFolder(folder, permissions: FilePermissions(rawValue: 0o777))
      if isNew { try FileSystem.synchronizeFolder(of: folder) }
    }
    return folder
  }

  /// Refuses to publish parts that were changed after they were written here.
  ///
  /// Processes that share a folder remove files that are not in their export. If they use two
  /// servers that both act as the primary, they remove files of each other's export.
  package func require(_ parts: [ExportPart]) throws(BatchError) {
    for part in parts where !isWhole(part) {
      throw BatchError(
        .damagedFile,
        "this file of the export is gone, or not as it was written",
        at: path.appending(part.file).string,
        advice: "find out who uses the folder, then \(.beginAnew)"
      )
    }
  }

  /// Whether a complete file is as it was written: its checksum tells, unless the time of its last change does.
  private func isWhole(_ part: ExportPart) -> Bool {
    let file = path.appending(part.file)
    guard let status = FileSystem.status(of: file), status.size == part.bytes else { return false }
    guard status.nanosecondsOfModification != part.modified, let sum = part.sha256 else {
      return true
    }
    guard let opened = try? FileDescriptor.open(file, .readOnly, options: .closeOnExec) else {
      return false
    }
    defer { try? opened.close() }
    return (try? SHA256(of: opened, upTo: part.bytes, file))?.finish() == sum
  }

  /// Why a file of an unfinished export differs from what was written; nil if none does.
  package func loss(of parts: [ExportPart], _ current: ExportPart) -> String? {
    let size = FileSystem.status(of: path.appending(current.file))?.size ?? -1
    let changed = size >= current.bytes ? parts.first { !isWhole($0) } : current
    return changed.map {
      "\(path.appending($0.file).string) is gone, or not as it was written"
    }
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
    let removed = files().filter { file, name in
      name.hasPrefix(ExportPart.prefix(ofRun: run)) && !others.contains(file)
    }
    for (file, _) in removed { remove(file) }
    return removed.map { path.appending($0.file) }
  }

  /// The files in the folder and in those of partitions: their paths from it, and their names.
  private func files(in partition: String = "") -> [(file: String, name: String)] {
    let place = path.appending(partition).string
    let names = (try? FileManager.default.contentsOfDirectory(atPath: place)) ?? []
    return names.flatMap { name -> [(String, String)] in
      let file = partition.isEmpty ? name : "\(partition)/\(name)"
      guard name.contains("="), FileSystem.kind(of: path.appending(file)) == .folder else {
        return [(file, name)]
      }
      return files(in: file)
    }
  }

  /// Removes a file, and the folders of its partition that become empty.
  func remove(_ file: String) {
    var place = path.appending(file)
    try? FileSystem.remove(place)
    for _ in file.split(separator: "/").dropFirst() {
      place.removeLastComponent()
      FileSystem.removeEmptyFolder(place)
    }
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
    for (file, name) in files() {
      let isOfOwn = name.hasPrefix(own)
      let isOfOld = old.contains { name.hasPrefix($0) || name.hasPrefix(".\($0)") }
      let isLeft = replaced != nil && name.hasPrefix(".\(Self.manifestName).")
      if isLeft || (isOfOwn || isOfOld) && !named.contains(file) { remove(file) }
    }
  }
}
