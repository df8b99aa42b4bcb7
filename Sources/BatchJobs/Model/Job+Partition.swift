package import BatchIdentifiers
import BatchRuns
import SystemPackage

extension Job {
  /// A part of a folder's path that stands for the value in a column, such as `year={year}`.
  public struct Partition: Hashable, Sendable, CustomStringConvertible {
    /// The name before the value.
    public var name: String
    /// The column.
    public var column: String

    /// Makes a part of a path.
    public init(_ name: String, column: String) {
      (self.name, self.column) = (name, column)
    }

    /// Nil if the text has no column.
    init?(_ text: String) {
      guard let place = text.firstRange(of: "={"), text.hasSuffix("}") else { return nil }
      let column = text[place.upperBound...].dropLast()
      guard !Job.runsInNames.contains("{\(column)}") else { return nil }
      self.init(String(text[..<place.lowerBound]), column: String(column))
    }

    /// Takes the partitions off the end of a path.
    static func split(_ path: FilePath) -> (folder: FilePath, partitions: [Partition]) {
      var (folder, partitions) = (path, [Partition]())
      while let text = folder.lastComponent?.string, let partition = Partition(text) {
        partitions.insert(partition, at: 0)
        folder.removeLastComponent()
      }
      return (folder, partitions)
    }

    /// The partition as a job file writes it.
    public var description: String { "\(name)={\(column)}" }
  }

  /// The columns by whose values an export has folders; none for any other work.
  package var partitions: [Partition] {
    if case .export(let export) = action, export.isInParts { export.partitions } else { [] }
  }

  /// The place of a name that the database does not know.
  package func path(of subject: BatchError.Subject?) -> JobPath {
    let path = source.path(of: subject)
    guard path == .entity, case .attribute(let name) = subject,
      partitions.contains(where: { $0.column == name })
    else { return path }
    return .exportFolder
  }

  func partitionProblems() -> [JobProblem] {
    guard case .export(let export) = action, export.isInParts else { return [] }
    var problems: [JobProblem] = []
    func refuse(_ problem: String, _ remedy: String, _ path: JobPath = .exportFolder) {
      problems.append(.init(path, problem, remedy: remedy))
    }
    var rest = export.file.lastComponent?.string ?? ""
    for name in Self.runsInNames { rest = rest.replacing(name, with: "") }
    let before = export.file.removingLastComponent().components
    if rest.contains(where: { "{}".contains($0) })
      || before.contains(where: { $0.string.contains("{") || $0.string.contains("}") })
    {
      refuse(
        "\(rest.quotedForMessage) is neither a partition nor before all of them",
        "write partitions as NAME={COLUMN}, such as year={year}, at the end of the path"
      )
    }
    var names: Set<String> = []
    for partition in export.partitions {
      if partition.name.isEmpty || partition.column.isEmpty || partition.name.contains("=") {
        refuse(
          "\("\(partition)".quotedForMessage) is no partition",
          "write NAME={COLUMN}, such as year={year}"
        )
      }
      if !names.insert(partition.name.lowercased()).inserted {
        refuse("has \(partition.name.quotedForMessage) twice", "give each partition its own name")
      }
    }
    for partition in export.partitions
    where partition.name.lowercased() != partition.column.lowercased() {
      guard
        export.columns?.contains(where: { $0.lowercased() == partition.name.lowercased() }) == true
      else { continue }
      refuse(
        "readers would take the value of \(partition.column.quotedForMessage) for that of the column"
          + " \(partition.name.quotedForMessage)",
        "give the partition another name"
      )
    }
    guard !export.partitions.isEmpty else { return problems }
    if source.identifiers != nil {
      let reason = "its order is not that of the partitions of action.folder"
      refuse(reason, "say in \"where\" which rows, or export to one folder", .identifiers)
    }
    if source.limit != nil {
      let reason = "would take the first rows by partition, not by source.orderBy or key"
      refuse(reason, "remove it, or export to one folder", JobPath("source", "limit"))
    }
    return problems
  }
}
