public import SystemPackage

extension Job {
  /// Programs to notify about a run: each a name and its arguments, never a shell command line.
  ///
  /// They cannot affect the run.
  public struct Hooks: Hashable, Sendable {
    /// What a program is notified of.
    public enum Event: String, CaseIterable, Sendable {
      /// A new or resumed run is about to process its chunks.
      case onStart
      /// It is complete, with or without failed identifiers.
      case onFinish
      /// It failed with an error.
      case onFailure
      /// It is held by something other than its pace.
      case onThrottle
      /// It was stopped by a signal, a limit or its hours, and can be resumed.
      case onStop
      /// It was stopped by an operator, and can be resumed.
      case onCancel
      /// It was refused, or could not start.
      case onRefuse
      /// It resumes after its previous process was killed.
      case onKill
    }

    /// The program to run for each event.
    public var commands: [Event: [String]]

    /// Makes hooks.
    public init(_ commands: [Event: [String]] = [:]) {
      self.commands = commands
    }
  }

  /// A file that reports how a run ended, for people or programs.
  public struct Report: Hashable, Sendable {
    /// The formats of a report.
    public enum Format: String, CaseIterable, Sendable {
      case html, json
    }

    /// The file; its extension determines the format.
    public var path: FilePath

    /// Makes the settings of a report.
    public init(path: FilePath) {
      self.path = path
    }

    /// The format of the file's extension.
    package var format: Format? { path.extension.flatMap { Format(rawValue: $0.lowercased()) } }
  }
}
