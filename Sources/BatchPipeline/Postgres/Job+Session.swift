#if PostgreSQL
import BatchIdentifiers
import BatchPostgres

extension Job.DatabaseOptions.Server {
  /// Does something with a session, which ends with it.
  ///
  /// - Throws: What `body` throws, or what keeps the session from being made.
  func inSession<Result: Sendable>(
    _ body: @Sendable (PostgresSession) throws(BatchError) -> Result
  ) async throws(BatchError) -> Result {
    let connection = PostgresConnection(label: "batch", address: try address())
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

extension Job {
  /// Does something with a session of the job's server, which ends with it.
  ///
  /// - Throws: What `body` throws, or what keeps the session from being made.
  func inSession<Result: Sendable>(
    _ body: @Sendable (PostgresSession) throws(BatchError) -> Result
  ) async throws(BatchError) -> Result {
    guard let server = database.server else {
      preconditionFailure("a job on a file has no server")
    }
    return try await server.inSession(body)
  }

  /// Whether a host has the job locked, to begin a run; not if the server cannot be asked.
  func isLockedOnServer() async -> Bool {
    let name = name
    let isLocked = try? await inSession { session throws(BatchError) in
      try RunTables(of: session).isLocked(job: name, in: session)
    }
    return isLocked ?? false
  }

  /// The job's run that was begun last, or one by its UUID or the first characters of that.
  ///
  /// - Throws: `BatchError` of code `fileAccess` if there is none, `unknownRun` if none has the name, or several have.
  func sharedRun(
    _ name: String? = nil,
    _ tables: RunTables,
    in session: PostgresSession
  ) throws(BatchError) -> SharedRun {
    let runs = try tables.runs(ofJobIfThere: self.name, in: session)
    guard let name else {
      if let last = runs.last { return last }
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

extension RunTables {
  /// The runs of a job, the newest last; none if there are no tables yet.
  func runs(
    ofJobIfThere job: String,
    in session: PostgresSession
  ) throws(BatchError) -> [SharedRun] {
    guard try exist(in: session) else { return [] }
    return try runs(ofJob: job, in: session)
  }
}
#endif
