public import BatchIdentifiers

extension Store {
  /// Fetches the identifiers of the rows that satisfy a request, in one read transaction.
  ///
  /// The identifiers are those of committed rows; the transaction ends before this returns, so the
  /// list pins nothing and later changes do not show in it.
  ///
  /// - Throws: `BatchError` with code `unknownEntity`, `unknownAttribute` or `invalidSQL` for a
  ///   request that does not fit the store, `unstableKey` if the rows cannot be identified.
  /// - Complexity: One statement; memory for the compressed list alone.
  public func fetchIdentifiers(
    _ request: FetchRequest
  ) async throws(BatchError) -> IdentifierList {
    let context = makeContext(label: "batch.fetch")
    return try await context.perform { connection throws(BatchError) in
      try connection.transaction(.deferred) { () throws(BatchError) in
        let query = try IdentifierQuery(request, schema: schema, connection: connection)
        return try query.fetch(in: connection, store: identity)
      }
    }
  }

  /// Counts the rows that satisfy a request.
  public func fetchCount(_ request: FetchRequest) async throws(BatchError) -> Int {
    let context = makeContext(label: "batch.count")
    return try await context.perform { connection throws(BatchError) in
      try IdentifierQuery(request, schema: schema, connection: connection).count(in: connection)
    }
  }
}
