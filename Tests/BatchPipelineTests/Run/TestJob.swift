import BatchRuns
import BatchPipeline
import BatchSQLite
import BatchTestSupport
import SystemPackage

extension Job {
  /// A job on a database of the directory, with small chunks.
  static func test(
    _ name: String = "job",
    in directory: TemporaryDirectory,
    database: String = "test.db",
    _ source: Job.Source = .init(entity: "numbers", everything: true),
    _ action: Job.Action = .update(.init(set: [.init("n", to: "n + 1")])),
    chunk: Int = 10,
    workers: Int = 3,
    path: String? = nil
  ) -> Job {
    Job(
      name: name,
      database: .init(path: FilePath(directory.file(database))),
      source: source,
      action: action,
      chunk: .init(size: chunk),
      workers: workers,
      checkpoint: .init(path: path.map { FilePath($0) }),
      baseDirectory: FilePath(directory.path)
    )
  }
}

extension Job.Action {
  /// An export to a file of the directory, in the format that its name says.
  static func exporting(_ directory: TemporaryDirectory, _ file: String = "out.ndjson") -> Self {
    .export(
      .init(
        file: FilePath(directory.file(file)),
        format: file.hasSuffix(".csv") ? .csv : .ndjson
      )
    )
  }
}

extension BatchRun.Options {
  /// Progress after every chunk.
  static var telling: BatchRun.Options {
    var options = BatchRun.Options()
    options.progressInterval = .zero
    return options
  }
}
