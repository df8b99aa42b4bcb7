public import SystemPackage

extension Job {
  /// Programs to notify of events of a run.
  ///
  /// Each is a program with its arguments, never a shell command line. They cannot affect the run.
  public struct Hooks: Hashable, Sendable {
    /// An event that a program can be notified of.
    public enum Event: String, CaseIterable, Sendable {
      /// A new or resumed run is about to process its chunks.
      case onStart
      /// The run is complete, with or without failed identifiers.
      case onFinish
      /// The run failed with an error.
      case onFailure
      /// The run is held by something other than its pace.
      case onThrottle
      /// The run was stopped by a signal, a limit or its window, and can be resumed.
      case onStop
      /// The run was stopped by an operator, and can be resumed.
      case onCancel
      /// The run was refused, or could not start.
      case onRefuse
      /// The run resumes after its previous process was killed.
      case onKill
    }

    /// The program to run for each event.
    public var commands: [Event: [String]]

    /// Makes hooks.
    public init(_ commands: [Event: [String]] = [:]) {
      self.commands = commands
    }
  }

  /// A file that reports the end of a run, for people or programs.
  public struct Report: Hashable, Sendable {
    /// The formats of a report.
    public enum Format: String, CaseIterable, Sendable {
      case html, json
    }

    /// The path of the file; its extension determines the format.
    public var path: FilePath

    /// Makes the settings of a report.
    public init(path: FilePath) {
      self.path = path
    }

    package var format: Format? { path.extension.flatMap { Format(rawValue: $0.lowercased()) } }
  }
}
