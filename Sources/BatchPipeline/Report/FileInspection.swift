import BatchJobs
public import BatchRuns
public import BatchIdentifiers
import BatchSQLite
public import SystemPackage

/// The content of an identifier file or a checkpoint, as `inspect --json` prints it.
public struct FileInspection: Sendable, Encodable {
  /// The run that a checkpoint records.
  public struct Run: Sendable, Encodable {
    /// The run's UUID.
    public let run: String
    /// The job's name.
    public let job: String
    /// When the run first began, in ISO 8601 and UTC.
    public let startedAt: String
    /// The state of the run according to the last record.
    public let state: String
    /// The number of done identifiers according to the last record.
    public let done: Int
    /// The number of ranges of done positions.
    public let ranges: Int
    /// Where done chunks are recorded.
    public let ledger: String
    /// The failed identifiers in the file, in list order.
    public let failed: [Failure]
  }

  /// An identifier that failed, and why.
  public struct Failure: Sendable, Encodable {
    /// The identifier, as a URI.
    public let identifier: PersistentIdentifier
    /// The position of the identifier, and the error.
    public let failure: FailedIdentifier

    private enum CodingKeys: CodingKey { case identifier }

    /// Encodes the URI of the identifier beside the fields of the failure.
    public func encode(to encoder: any Encoder) throws {
      try failure.encode(to: encoder)
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(identifier.description, forKey: .identifier)
    }
  }

  /// The version of the file format.
  public let version: Int
  /// The store that the identifiers belong to.
  public let store: String
  /// The entity that the identifiers belong to.
  public let entity: String
  /// The number of identifiers.
  public let count: Int
  /// Whether the identifiers are in key order.
  public let isSorted: Bool
  /// The size of the file in bytes.
  public let fileBytes: Int
  /// The size of the packed keys in bytes.
  public let listBytes: Int
  /// The size of the packed keys in bits, divided by their number.
  public let bitsPerIdentifier: Double
  /// The number of appended records.
  public let records: Int
  /// The length of an incomplete record at the end of the file, in bytes.
  public let tornBytes: Int
  /// The run, if the file is a checkpoint.
  public let run: Run?

  /// Opens the file at a path given as text, and checks every part of it.
  ///
  /// - Throws: `BatchError` that names the damaged part.
  @_disfavoredOverload
  public init(of path: String) throws(BatchError) {
    try self.init(of: FilePath(path))
  }

  /// Opens a file, and checks every part of it.
  ///
  /// - Throws: `BatchError` that names the damaged part.
  /// - Complexity: O(*n*) in the size of the file.
  public init(of path: FilePath) throws(BatchError) {
    let file = try IdentifierFile(opening: path)
    try file.verify()
    version = file.version
    store = file.storeIdentifier
    entity = file.entityName
    let checkpoint = file.metadata.isEmpty ? nil : try Checkpoint(reading: path)
    count = checkpoint.map { $0.knownTotal(after: $0.progress) } ?? file.list.count
    isSorted = file.list.isSorted
    fileBytes = file.byteCount
    listBytes = file.list.payloadByteCount
    bitsPerIdentifier =
      count == 0 ? 0 : (Double(listBytes) * 800 / Double(count)).rounded() / 100
    records = file.recordCount
    tornBytes = file.tornByteCount
    run = try checkpoint.map { checkpoint throws(BatchError) in try Run(checkpoint, file) }
  }
}

extension FileInspection.Run {
  init(_ checkpoint: Checkpoint, _ file: IdentifierFile) throws(BatchError) {
    var failed: [FileInspection.Failure] = []
    for failure in try file.failedIdentifiers() {
      let identifier = try file.identifier(at: failure.position)
      failed.append(FileInspection.Failure(identifier: identifier, failure: failure))
    }
    self.failed = failed
    run = checkpoint.metadata.run
    job = checkpoint.metadata.job
    startedAt = checkpoint.metadata.startedAt
    state = checkpoint.progress.state.rawValue
    done = checkpoint.progress.done.count
    ranges = checkpoint.progress.done.rows.count
    ledger = checkpoint.metadata.ledger.rawValue
  }
}
