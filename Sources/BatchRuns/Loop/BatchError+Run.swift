public import BatchIdentifiers

extension BatchError.Code {
  /// Another connection held the database longer than the busy timeout.
  public static let busy = Self(rawValue: "busy")
  /// The server does not admit the role, or the role lacks a right.
  public static let accessDenied = Self(rawValue: "accessDenied")
  /// The connection to a database server was lost or could not be made.
  public static let connectionLost = Self(rawValue: "connectionLost")
  /// A value does not fit its type, or an expression has no value for a row.
  public static let invalidValue = Self(rawValue: "invalidValue")
  /// A selected row no longer satisfies `where`, and the job's `recheck` stops the run.
  public static let noLongerMatching = Self(rawValue: "noLongerMatching")
  /// Rows have changed since they were read.
  package static let rowsChanged = Self(rawValue: "rowsChanged")
  /// The database is no longer as the run left it, or its file was replaced.
  public static let storeChanged = Self(rawValue: "storeChanged")
  /// A time limit or an operator of the server cancelled the statement.
  public static let statementCancelled = Self(rawValue: "statementCancelled")
  /// An identifier belongs to another store, or to a store that the container does not have.
  public static let foreignIdentifier = Self(rawValue: "foreignIdentifier")
  /// Too many rows of a run's canary have failed, or they are not as the run left them.
  public static let canaryFailed = Self(rawValue: "canaryFailed")
  /// A database or table is not a copy of the one that it is compared with.
  public static let otherStore = Self(rawValue: "otherStore")
  /// What a run would do is not what was planned.
  public static let planChanged = Self(rawValue: "planChanged")
  /// No records exist to undo a run.
  public static let noUndo = Self(rawValue: "noUndo")
  /// A row to be undone is not as the run left it.
  public static let changedSince = Self(rawValue: "changedSince")
  /// A trigger changed what an undo restored, so the row was left as it was.
  public static let notRestored = Self(rawValue: "notRestored")
  /// The operation was interrupted.
  public static let interrupted = Self(rawValue: "interrupted")
  /// A handler threw an error, or a child process did not answer as required.
  public static let handlerFailed = Self(rawValue: "handlerFailed")
  /// The action is not possible now but may be later.
  ///
  /// A handler throws it if something that a row depends on is unavailable; the row is retried
  /// according to the job key `retry`. Thrown by the closure of a context run, it affects the whole
  /// chunk.
  public static let retryLater = Self(rawValue: "retryLater")
  /// Another process has taken over the span of a chunk, so none of the chunk was done.
  package static let leaseLost = Self(rawValue: "leaseLost")
  /// A handler did not return within its time limit.
  public static let handlerTimeout = Self(rawValue: "handlerTimeout")
}

/// The database's own error behind a `BatchError`.
package protocol DatabaseError: Error, Sendable {
  var isAboutRows: Bool { get }
}

extension BatchError {
  /// Whether the error concerns the values of a row, so that other rows of its chunk may succeed.
  ///
  /// Such errors are violated constraints, errors raised by a trigger, wrong types, and expressions
  /// that fail for these values.
  ///
  /// All other errors concern the run: a lock, the disk, a damaged or read-only database, memory,
  /// an interrupt, a connection, a statement that does not compile.
  package var isAboutRows: Bool {
    if let error = underlying as? any DatabaseError { return error.isAboutRows }
    return [.constraint, .handlerFailed, .invalidText, .invalidValue, .notRestored].contains(code)
  }

  package var isTransient: Bool { [.busy, .connectionLost, .retryLater].contains(code) }

  /// The error with the key of its row in the message.
  package func about(_ key: PrimaryKey) -> BatchError {
    var error = self
    error.message = "identifier \(PrimaryKey.shown(key.description)): \(message)"
    return error
  }

  /// Converts an error that a handler threw.
  package init(thrownByHandler error: any Error) {
    if let error = error as? BatchError {
      self = error
      if code != .retryLater { code = .handlerFailed }
    } else {
      self.init(.handlerFailed, "the handler threw \(error)", underlying: error)
    }
  }

  package static func handlerTimeout(after limit: Duration) -> BatchError {
    BatchError(
      .handlerTimeout,
      "the handler has not returned after \(limit)",
      advice: "look for a row that it never finishes, or raise \(.timeLimit)"
    )
  }
}
