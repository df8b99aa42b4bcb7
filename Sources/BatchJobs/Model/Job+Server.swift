import BatchPlatform
import SystemPackage
public import BatchIdentifiers
import BatchRuns

extension BatchError.Code {
  /// The program was built without PostgreSQL.
  public static let postgreSQLMissing = Self(rawValue: "postgreSQLMissing")
}

extension BatchError {
  /// The error of a program built without PostgreSQL support.
  ///
  /// - Parameters:
  ///   - what: The reason why PostgreSQL is needed, such as "the job is for PostgreSQL".
  ///   - place: The place of that reason.
  /// - Returns: The error, with the build command as its remedy.
  package static func postgreSQLMissing(_ what: String, at place: String? = nil) -> BatchError {
    BatchError(
      .postgreSQLMissing,
      "\(what), and this program was built without it",
      at: place,
      remedy: "build it with: swift build -c release --product batch --traits PostgreSQL"
    )
  }
}

extension RunCause {
  /// Refuses work on PostgreSQL if this program was built without support for it.
  package func requireSupport() throws(BatchError) {
    #if !PostgreSQL
    guard let server = database.server else { return }
    throw .postgreSQLMissing("the job is for PostgreSQL", at: place(of: server.path))
    #endif
  }

  /// Refuses work on PostgreSQL, for an operation that supports only SQLite files.
  ///
  /// `what` names the operation, such as "batch verify".
  package func requireFile(for what: String) throws(BatchError) {
    try requireSupport()
    guard let server = database.server else { return }
    throw BatchError(
      .invalidJob,
      "\(what) does not work on PostgreSQL yet",
      at: place(of: server.path),
      remedy: "see Documentation/PostgreSQL.md for what does"
    )
  }
}

extension Job {
  /// The server whose tables record the runs of the job, which hosts then share.
  ///
  /// It is nil if a host records the runs in its own files, as for SQLite and for exports to one
  /// file, and if it is to leave no record there, as for a rehearsal.
  package var sharedServer: DatabaseOptions.Server? {
    if isRehearsal { return nil }
    if case .export(let export) = action, !export.isInParts { return nil }
    return database.server
  }
}

extension Job.DatabaseOptions.Server {
  package var path: JobPath {
    switch self {
    case .url: JobPath("database", "url")
    case .service: JobPath("database", "service")
    }
  }

  package static func isURL(_ text: String) -> Bool {
    ["postgres://", "postgresql://"].contains(where: text.hasPrefix)
  }

  /// Refuses a PostgreSQL URL for an operation that supports only SQLite files.
  ///
  /// `database` is what the user named, and `what` is the operation, such as "batch schema".
  package static func requireFile(
    _ database: String,
    for what: String,
    remedy: String
  ) throws(BatchError) {
    guard isURL(database) else { return }
    throw BatchError(.invalidJob, "\(what) does not work on PostgreSQL yet", remedy: remedy)
  }

  /// Refuses a URL of the command line that contains a password; the error omits the password.
  package func refusePassword() throws(BatchError) {
    guard case .url(let url) = self, Self.holdsPassword(url) else { return }
    throw BatchError(
      .invalidJob,
      "the URL contains a password, which everybody sees who lists processes",
      remedy: Self.remedyForPassword
    )
  }

  fileprivate static let remedyForPassword =
    "give it in PGPASSWORD, in a password file (~/.pgpass), or in a service"

  /// URL parameters with secret values.
  private static let secretNames = [
    "password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key",
  ]

  /// Whether a URL contains a password: `user:password@host`, or a parameter.
  ///
  /// See <https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS>.
  package static func holdsPassword(_ url: String) -> Bool {
    guard let scheme = url.firstRange(of: "://") else { return false }
    let rest = url[scheme.upperBound...]
    let authority = rest.prefix { $0 != "@" && $0 != "/" }
    if authority.endIndex < rest.endIndex, rest[authority.endIndex] == "@",
      let colon = authority.firstIndex(of: ":"), authority.index(after: colon) < authority.endIndex
    {
      return true
    }
    guard let mark = rest.firstIndex(of: "?") else { return false }
    return rest[mark...].dropFirst().split(separator: "&").contains { (parameter: Substring) in
      let parts = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      // The only reason to escape letters of a name is to hide it.
      let isSecret = parts[0].contains("%") || secretNames.contains(String(parts[0]))
      return isSecret && parts.count == 2 && !parts[1].isEmpty
    }
  }
}

// MARK: - Rules

extension Job {
  /// Settings that have no meaning on PostgreSQL, or are not supported there yet.
  func serverProblems() -> [JobProblem] {
    guard let server = database.server else {
      // As a path, the URL has lost a slash.
      if ["postgres:/", "postgresql:/"].contains(where: database.path.string.contains) {
        return [
          JobProblem(.database, "this is a URL, not a path", remedy: "write url instead of path")
        ]
      }
      let options: [(path: JobPath, isSet: Bool, reason: String)] = [
        (
          JobPath("database", "lease"), database.lease != DatabaseOptions.defaultLease,
          "only processes that share a run on PostgreSQL have leases"
        ),
        (
          JobPath("throttle", "vacuum"), policy.throttle.yieldsToVacuum,
          "only a run on PostgreSQL can wait for a vacuum"
        ),
      ]
      return options.filter(\.isSet).map { JobProblem($0.path, $0.reason, remedy: "remove it") }
    }
    return addressProblems(server) + sqliteOptions() + unsupported()
  }

  private func addressProblems(_ server: DatabaseOptions.Server) -> [JobProblem] {
    var problems: [JobProblem] = []
    if !database.path.isEmpty {
      problems.append(
        JobProblem(.database, "contradicts \(server.path)", remedy: "remove one of the two")
      )
    }
    switch server {
    case .url(let url):
      if !DatabaseOptions.Server.isURL(url) {
        problems.append(
          JobProblem(
            server.path,
            "is not a PostgreSQL URL",
            remedy: "write postgres://user@host/database"
          )
        )
      } else if DatabaseOptions.Server.holdsPassword(url) {
        problems.append(
          JobProblem(
            server.path,
            "contains a password, which every reader of the job file sees",
            remedy: DatabaseOptions.Server.remedyForPassword
          )
        )
      }
    case .service(let name):
      if name.isEmpty {
        problems.append(JobProblem(server.path, "is empty", remedy: "name a service"))
      } else if name.contains("://") {
        problems.append(
          JobProblem(server.path, "is a URL, not a service", remedy: "write url instead of service")
        )
      }
    }
    problems += RunPolicy.problems(of: database.lease, "database", "lease").map {
      JobProblem(JobPath($0.path.map { .key($0) }), $0.message, remedy: $0.remedy)
    }
    if database.lease < .seconds(1) {
      problems.append(
        JobProblem(
          JobPath("database", "lease"),
          "is too short for several heartbeats",
          remedy: "choose 1s or more"
        )
      )
    }
    return problems
  }

  /// Settings of SQLite, which PostgreSQL has elsewhere or not at all.
  private func sqliteOptions() -> [JobProblem] {
    let standard = DatabaseOptions(path: "")
    var options: [(path: JobPath, isSet: Bool, reason: String)] = [
      (
        JobPath("database", "synchronous"), database.synchronous != standard.synchronous,
        "PostgreSQL has synchronous_commit instead, set for the role or the database"
      ),
      (
        JobPath("database", "journalMode"), database.journalMode != standard.journalMode,
        "PostgreSQL has no journal mode"
      ),
      (
        JobPath("database", "foreignKeys"), database.foreignKeys,
        "PostgreSQL always enforces foreign keys"
      ),
      (
        JobPath("database", "readOnly"), database.readOnly,
        "on PostgreSQL the role's privileges decide what may be written"
      ),
      (
        JobPath("database", "extensions"), !database.extensions.isEmpty,
        "the extensions of PostgreSQL are the server's"
      ),
      (
        JobPath("database", "coreData"), database.coreData != standard.coreData,
        "Core Data has no stores in PostgreSQL"
      ),
      (
        JobPath("throttle", "maximumWAL"), policy.throttle.maximumWAL != Throttle().maximumWAL,
        "it bounds the log of an SQLite file"
      ),
      (
        JobPath("throttle", "minimumFreeDisk"), policy.throttle.minimumFreeDisk != nil,
        "the disk is the server's"
      ),
      (
        JobPath("checkpoint", "list"), policy.checkpoint.list != .file,
        "the list of a run on PostgreSQL is always in the database"
      ),
    ]
    if sharedServer != nil { options += recordOptions() }
    // A file must not contain such a setting, even with its default value.
    return options.filter { $0.isSet || origin?.has($0.path) ?? false }
      .map { JobProblem($0.path, $0.reason, remedy: "remove it") }
  }

  /// Settings of records in files, which do not exist for runs that hosts share.
  private func recordOptions() -> [(path: JobPath, isSet: Bool, reason: String)] {
    [
      (
        JobPath("checkpoint", "path"), policy.checkpoint.path != nil,
        "a run on PostgreSQL keeps all in the database, where every host finds it"
      ),
      (
        JobPath("checkpoint", "interval"), policy.checkpoint.interval != Checkpoint().interval,
        "a run on PostgreSQL has no checkpoint file to update"
      ),
      (
        JobPath("history"), policy.history != .standard,
        "runs on PostgreSQL stay in _batch_run until batch cleanup"
      ),
    ]
  }

  /// Settings that are only supported on SQLite so far.
  private func unsupported() -> [JobProblem] {
    var problems: [JobProblem] = []
    func refuse(_ path: JobPath, _ what: String) {
      problems.append(
        JobProblem(
          path,
          "\(what) does not work on PostgreSQL yet",
          remedy: "see Documentation/PostgreSQL.md for what does"
        )
      )
    }
    if !action.selectsRows, undo != nil { refuse(JobPath("undo"), "the undo of a load") }
    if afterwards == .incremental {
      problems.append(
        JobProblem(
          JobPath("afterwards"),
          "\"incremental\" cuts pages off an SQLite file",
          remedy: "write \"vacuum\""
        )
      )
    }
    return problems
  }
}
