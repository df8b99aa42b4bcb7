package import BatchIdentifiers
import SystemPackage

/// The files that one process writes to the folder of an export, one after another.
///
/// A file has its name from the beginning: it belongs to the export once the manifest names it. A resumed
/// run cuts the file in progress back to its recorded length, as it does with an only file, and removes those
/// that came after it.
package final class ExportFiles {
  /// What the files of a run have in common.
  package struct Settings: Sendable {
    let form: ExportForm
    /// What a file begins with.
    let header: [UInt8]
    /// Whether every file has the header; otherwise, only the first one.
    let isHeaderRepeated: Bool
    /// No file gets longer, unless a single chunk or group is.
    let limit: Int

    package init(_ form: ExportForm, header: [UInt8], isHeaderRepeated: Bool, limit: Int?) {
      (self.form, self.header, self.isHeaderRepeated) = (form, header, isHeaderRepeated)
      self.limit = limit ?? .max
    }
  }

  private let folder: ExportFolder
  private let run: String
  private let settings: Settings
  /// The runs whose files these replace.
  private let replaced: [String]
  /// The files that are complete, in order.
  private var closed: [ExportPart]
  /// How many of them earlier records have.
  private var recordedCount: Int
  /// The first position of the file in progress, and the number of its rows.
  private var (first, rows): (Int, Int)

  /// Makes the first file of a run in a folder, which may be new.
  package static func begin(
    in folder: ExportFolder,
    ofRun run: String,
    _ settings: Settings,
    replacing replaced: [String] = []
  ) throws(BatchError) -> ExportOutput {
    try folder.make()
    folder.removeParts(ofRun: run, but: [])
    let files = ExportFiles(in: folder, ofRun: run, settings, replaced, after: [], 0, 0)
    return ExportOutput(file: try files.makeFile(from: 0), files: files)
  }

  /// Opens the files of a resumed run.
  package static func resume(
    in folder: ExportFolder,
    ofRun run: String,
    _ settings: Settings,
    replacing replaced: [String] = [],
    after closed: [ExportPart],
    _ current: ExportPart
  ) throws(BatchError) -> ExportOutput {
    folder.removeParts(ofRun: run, but: Set(closed.map(\.file) + [current.file]))
    let path = folder.path.appending(current.file)
    let file = try ExportFile(resuming: path, partial: path, count: current.bytes, identity: nil)
    let files = ExportFiles(
      in: folder,
      ofRun: run,
      settings,
      replaced,
      after: closed,
      current.first,
      current.rows
    )
    return ExportOutput(file: file, files: files)
  }

  private init(
    in folder: ExportFolder,
    ofRun run: String,
    _ settings: Settings,
    _ replaced: [String],
    after closed: [ExportPart],
    _ first: Int,
    _ rows: Int
  ) {
    (self.folder, self.run, self.settings) = (folder, run, settings)
    self.replaced = replaced
    (self.closed, recordedCount) = (closed, closed.count)
    (self.first, self.rows) = (first, rows)
  }

  private func name(from first: Int) -> String {
    ExportPart.stem(ofRun: run, from: first) + settings.form.suffix
  }

  private func makeFile(from first: Int) throws(BatchError) -> ExportFile {
    let path = folder.path.appending(name(from: first))
    return try ExportFile(
      creating: path,
      partial: path,
      header: first == 0 || settings.isHeaderRepeated ? settings.header : [],
      permissions: folder.permissions
    )
  }

  package var limit: Int { settings.limit }

  /// Counts rows in the file in progress.
  package func count(_ rows: Int) { self.rows += rows }

  /// Whether the file in progress has rows, and no room for more bytes.
  package func isFull(_ file: ExportFile, for bytes: Int) -> Bool {
    rows > 0 && file.count + bytes > settings.limit
  }

  /// Begins another file at a position.
  ///
  /// - Precondition: The file before it is complete and on disk.
  package func next(after file: ExportFile, from position: Int) throws(BatchError) -> ExportFile {
    // If it cannot be made, a resumed run goes on with the one before.
    let next = try makeFile(from: position)
    closed.append(part(file, upTo: position))
    (first, rows) = (position, 0)
    return next
  }

  private func part(_ file: ExportFile, upTo position: Int) -> ExportPart {
    ExportPart(
      first..<max(first, position),
      host: nil,
      file: name(from: first),
      rows: rows,
      bytes: file.count
    )
  }

  /// What the next record says of the files; the complete ones are in one record each.
  package func takeRecord(_ file: ExportFile, upTo position: Int) -> ExportPartsRecord {
    defer { recordedCount = closed.count }
    return ExportPartsRecord(
      current: part(file, upTo: position),
      closed: Array(closed[recordedCount...])
    )
  }

  /// Names all files in the manifest, and removes those of the export before.
  package func publish(
    _ file: ExportFile,
    upTo position: Int,
    overwriting overwrites: Bool
  ) throws(BatchError) {
    if !overwrites { try folder.refuse(unlessReplacing: replaced, run) }
    let parts = closed + [part(file, upTo: position)]
    try folder.require(parts)
    try folder.publish(parts, ofRun: run, settings.form, replacing: replaced)
  }
}

/// The file that an export writes to.
package struct ExportOutput {
  let file: ExportFile
  /// The files of the folder, if the export has one; `file` is the one in progress.
  var files: ExportFiles?

  package init(file: ExportFile, files: ExportFiles? = nil) {
    (self.file, self.files) = (file, files)
  }
}
