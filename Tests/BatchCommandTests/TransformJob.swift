import BatchTestSupport
import Foundation

/// A transform of the table `numbers` by a program, in its own folder.
struct TransformJob {
  let directory: TemporaryDirectory
  /// The path of the database.
  let path: String

  init() throws {
    directory = try TemporaryDirectory()
    path = try TestDatabase.makeNumbers(100, in: directory)
  }

  /// A job in which a shell script computes `n`.
  func write(
    _ script: String,
    timeout: String = "20s",
    adding more: [String: Any] = [:]
  ) throws {
    try directory.write("#!/bin/sh\n\(script)\n", to: "compute.sh")
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755],
      ofItemAtPath: directory.file("compute.sh")
    )
    try write(command: ["./compute.sh"], timeout: timeout, adding: more)
  }

  /// A job in which a program computes.
  func write(
    command: [String],
    columns: [String] = ["id", "label"],
    writes: [String] = ["n"],
    timeout: String = "20s",
    adding more: [String: Any] = [:]
  ) throws {
    let action: [String: Any] = [
      "type": "transform", "columns": columns, "writes": writes, "command": command,
      "timeout": timeout,
    ]
    let tuning: [String: Any] = ["action": action, "chunk": ["size": 10], "workers": 2]
    try directory.write(JobText.update(adding: tuning.merging(more) { $1 }), to: "job.json")
  }

  /// The sum of `n`, and the number of rows.
  func sum() throws -> String {
    try TestDatabase.texts(path, "SELECT sum(n) || ' of ' || count(*) FROM numbers")[0]
  }
}
