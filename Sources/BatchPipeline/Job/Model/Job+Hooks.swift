public import SystemPackage

extension Job {
  /// Programs that are told what becomes of a run: the name of each and its arguments, never a line
  /// for a shell.
  ///
  /// What they come to changes nothing in the run.
  public struct Hooks: Hashable, Sendable {
    /// What a program is notified of.
    public enum Event: String, CaseIterable, Sendable {
      /// A run, new or resumed, is about to do its chunks.
      case onStart
      /// It is complete, with failed identifiers or without.
      case onFinish
      /// It came to an error.
      case onFailure
      /// It is held back by something else than a mere pace.
      case onThrottle
      /// It was stopped by a signal, a limit or its hours, and can be resumed.
      case onStop
      /// It was stopped by an operator, and can be resumed.
      case onCancel
      /// It was refused, or could not begin.
      case onRefuse
      /// It is resumed, and the process before was killed.
      case onKill
    }

    /// The program for each event that one is to be told of.
    public var commands: [Event: [String]]

    /// Makes hooks.
    public init(_ commands: [Event: [String]] = [:]) {
      self.commands = commands
    }
  }

  /// A file that tells how a run ended, for people or for programs.
  public struct Report: Hashable, Sendable {
    /// The forms of a report.
    public enum Format: String, CaseIterable, Sendable {
      case html, json
    }

    /// The file, whose extension says the form.
    public var path: FilePath

    /// Makes the settings of a report.
    public init(path: FilePath) {
      self.path = path
    }

    /// The form that the extension says.
    var format: Format? { path.extension.flatMap { Format(rawValue: $0.lowercased()) } }
  }
}
