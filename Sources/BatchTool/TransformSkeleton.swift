import BatchRuns
import BatchIdentifiers
import BatchPlatform
import SystemPackage

/// The program of a transform that `batch new transform` writes.
///
/// It changes no rows until the user completes it.
struct TransformSkeleton {
  enum Language: String, CaseIterable {
    case python, swift
  }

  let name: String
  let columns: [String]
  let writes: [String]
  let language: Language
  let folder: FilePath

  /// The script, or the folder of the package.
  var path: FilePath { folder.appending(language == .python ? "\(name).py" : name) }

  /// The command of the job; nil for a handler.
  var command: [String]? { language == .python ? ["python3", "\(name).py"] : nil }

  /// What the user has yet to do.
  var advice: String {
    language == .python
      ? "fill in what the script computes"
      : "fill in what the handler computes, then run the job: swift run --package-path \(path) \(name) run JOB"
  }

  func write() throws(BatchError) {
    switch language {
    case .python: try JobDraft.create(path, python)
    case .swift:
      let sources = path.appending("Sources").appending(name)
      do {
        try FileManager.default.createDirectory(
          atPath: sources.string,
          withIntermediateDirectories: true
        )
      } catch {
        throw BatchError(
          .fileAccess,
          "the folder cannot be created: \(error)",
          at: sources.string,
          underlying: error
        )
      }
      try JobDraft.create(path.appending("Package.swift"), manifest)
      try JobDraft.create(sources.appending("main.swift"), handler)
    }
  }

  func remove() {
    try? FileManager.default.removeItem(atPath: path.string)
  }

  private var python: String {
    let reads = columns.map { "#   row[\(Self.literal($0))]" }.joined(separator: "\n")
    let sets = writes.map { "        # answer[\(Self.literal($0))] = …" }.joined(separator: "\n")
    return """
      #!/usr/bin/env python3
      # Computes new values, a row a line. A row has these columns:
      \(reads)
      import json
      import sys

      for line in sys.stdin:
          row = json.loads(line)
          answer = {"$identifier": row["$identifier"]}
          try:
              # A column without a new value keeps its own; a row without any is left alone.
      \(sets)
              pass
          except Exception as error:
              # Fails this row only. "$retry" instead of "$error" asks for it again later.
              answer["$error"] = repr(error)
          print(json.dumps(answer), flush=True)

      """
  }

  private var manifest: String {
    """
    // swift-tools-version: 6.2

    import PackageDescription

    let package = Package(
      name: \(Self.literal(name)),
      platforms: [.macOS(.v26)],
      // A checkout of batch beside this folder.
      dependencies: [.package(name: "batch", path: "../batch")],
      targets: [
        .executableTarget(
          name: \(Self.literal(name)),
          dependencies: [
            .product(name: "BatchTool", package: "batch"),
            .product(name: "BatchPipeline", package: "batch"),
          ]
        )
      ],
      swiftLanguageModes: [.v6]
    )

    """
  }

  private var handler: String {
    let inputs = columns.enumerated().map { index, column in
      "  let input\(index + 1) = try columns.input(\(Self.literal(column)), as: SQLValue.self)"
    }
    let outputs = writes.enumerated().map { index, column in
      "  let output\(index + 1) = try columns.output(\(Self.literal(column)), as: SQLValue.self)"
    }
    let reads = columns.indices.map { "    let value\($0 + 1) = try row[input\($0 + 1)]" }
    let sets = writes.indices.map { "    // row.set(output\($0 + 1), to: …)" }
    let unused =
      (columns.indices.map { "value\($0 + 1)" } + writes.indices.map { "output\($0 + 1)" })
      .joined(separator: ", ")
    return """
      import BatchPipeline
      import BatchTool

      /// Computes new values, row by row. Int64, Double, String and [UInt8] can take the place of
      /// SQLValue, which is a value of any type.
      let handler = TransformHandler.rows { columns in
      \((inputs + outputs).joined(separator: "\n"))
        return { row in
      \((reads + ["    // A column that is not set keeps its value."] + sets).joined(separator: "\n"))
          _ = (\(unused))
        }
      }

      await BatchTool(handlers: [\(Self.literal(name)): handler]).run()

      """
  }

  /// A string literal that is valid in both languages.
  private static func literal(_ text: String) -> String {
    var literal = "\""
    for character in text {
      if character == "\"" || character == "\\" { literal.append("\\") }
      literal.append(character == "\n" ? " " : character)
    }
    return literal + "\""
  }
}
