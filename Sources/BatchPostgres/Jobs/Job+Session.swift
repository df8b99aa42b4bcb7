#if PostgreSQL
import BatchRuns
package import BatchJobs
package import BatchIdentifiers

extension Job.DatabaseOptions.Server {
  /// Runs `body` with a session, which `stop` may interrupt, and then ends the session.
  package func inSession<Result: Sendable>(
    within stop: PostgresInterrupter? = nil,
    _ body: @Sendable (PostgresSession) throws(BatchError) -> Result
  ) async throws(BatchError) -> Result {
    let connection = PostgresConnection(label: "batch", address: try address(), within: stop)
    let result: Swift.Result<Result, BatchError>
    do throws(BatchError) {
      result = .success(try await connection.perform(body))
    } catch {
      result = .failure(error)
    }
    await connection.close()
    return try result.get()
  }
}

extension RunCause {
  /// - Throws: `BatchError` of code `invalidJob`, with the place in the job, if libpq cannot read
  ///   the URL.
  package func address(of server: Job.DatabaseOptions.Server) throws(BatchError) -> ServerAddress {
    do {
      return try server.address()
    } catch {
      throw error.located(at: place(of: server.path))
    }
  }

  /// Runs `body` with a session of the job's server, and then ends the session.
  package func inSession<Result: Sendable>(
    within stop: PostgresInterrupter? = nil,
    _ body: @Sendable (PostgresSession) throws(BatchError) -> Result
  ) async throws(BatchError) -> Result {
    guard let server = database.server else {
      preconditionFailure("a job on a file has no server")
    }
    let waits = ServerWaits(at: try address(of: server), lockLimit: database.busyTimeout)
    return try await server.inSession(
      within: PostgresInterrupter(within: stop, telling: waits),
      body
    )
  }

  /// The application name on the server of a process that is about to begin or join a run of the
  /// job; application names must be ASCII.
  var beginner: String { "batch.open.\(XXHash64.uuid(of: name))" }

  /// Describes the activity of a process that is about to begin or join a run; nil without any.
  func wordsOfBeginning(in session: PostgresSession) throws(BatchError) -> String? {
    try ServerWait.words(ofApplication: beginner, in: session)
  }

  /// The job's last run, or the run with the given UUID or first characters of it.
  ///
  /// - Throws: `BatchError` of code `fileAccess` if there are no runs, `unknownRun` unless exactly
  ///   one run matches the name.
  func sharedRun(
    _ name: String? = nil,
    _ tables: RunTables,
    in session: PostgresSession
  ) throws(BatchError) -> TableRun {
    let runs = try tables.runs(ofJobIfThere: self.name, in: session)
    guard let name else {
      if let last = runs.last { return last }
      if let words = try wordsOfBeginning(in: session) {
        throw BatchError(
          .fileAccess,
          "job \"\(self.name)\" is about to begin its first run: \(words)",
          at: session.address.description,
          remedy: "ask again when it has begun"
        )
      }
      throw BatchError(
        .fileAccess,
        "job \"\(self.name)\" has not been run",
        at: session.address.description,
        remedy: "run it first"
      )
    }
    let found = runs.filter { !name.isEmpty && $0.run.hasPrefix(name.lowercased()) }
    guard let run = found.first, found.count == 1 else {
      throw BatchError.unknownRun(
        name,
        count: found.count,
        at: session.address.description
      )
    }
    return run
  }
}

extension BatchError {
  /// The error for a run whose list was removed.
  static func identifiersGone(ofRun run: String, at place: String) -> BatchError {
    BatchError(
      .outcomeNotRecorded,
      "the identifiers of run \(run) are gone from the database",
      at: place,
      remedy: "batch cleanup removes them; they cannot be restored"
    )
  }
}

extension RunTables {
  /// Refuses to begin a run of a job while an unfinished one over the same table, given by its
  /// identity, is recorded in another schema.
  func refuseRunsElsewhere(
    ofJob job: String,
    over table: () throws(BatchError) -> String,
    in session: PostgresSession
  ) throws(BatchError) {
    for (schema, run) in try runsElsewhere(ofJob: job, in: session).runs
    where try RunMetadata(ofSharedRun: run).table == table() {
      throw BatchError(
        .unfinishedRun,
        "an unfinished run of this job is recorded in the schema \(schema.quotedForMessage), and this session would record"
          + " another in \(self.schema.quotedForMessage), the first of its search_path",
        at: session.address.description,
        remedy:
          "set the search_path of the role so that \(schema.quotedForMessage) comes first, or finish that run"
      )
    }
  }

  /// The runs of a job, the newest last; none if there are no tables yet.
  package func runs(
    ofJobIfThere job: String,
    in session: PostgresSession
  ) throws(BatchError) -> [TableRun] {
    guard try canBeRead(in: session) else { return [] }
    return try runs(ofJob: job, in: session)
  }
}
#endif
