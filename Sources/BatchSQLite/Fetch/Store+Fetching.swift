public import BatchIdentifiers

extension Store {
  /// Fetches the identifiers of the rows that satisfy a request, in one read transaction.
  ///
  /// The identifiers are those of committed rows. The transaction ends before this returns, so the
  /// list holds no snapshot open and does not reflect later changes.
  ///
  /// - Throws: `BatchError` with code `unknownEntity`, `unknownAttribute` or `invalidSQL` for a
  ///   request that does not fit the store, `unstableKey` if the rows cannot be identified.
  /// - Parameters:
  ///   - request: Which rows to fetch.
  ///   - readers: The maximum number of connections that read at the same time, each of them a
  ///     range of keys. Only one reads if each would also have to read the rows of the others, or
  ///     if the order is not that of the keys.
  /// - Returns: The identifiers, in the order of the request.
  /// - Complexity: One statement, or several per reader. Needs memory only for the compressed list.
  public func fetchIdentifiers(
    _ request: FetchRequest,
    readers: Int = 1
  ) async throws(BatchError) -> IdentifierList {
    let query = try await connection(label: "batch.fetch").perform {
      connection throws(BatchError) in
      try IdentifierQuery(request, schema: schema, connection: connection)
    }
    return try await IdentifierFetch(query, from: self, readers: readers).run(store: identity)
      .loaded()
  }

  /// Counts the rows that satisfy a request.
  public func fetchCount(_ request: FetchRequest) async throws(BatchError) -> Int {
    let reader = connection(label: "batch.count")
    return try await reader.perform { connection throws(BatchError) in
      try IdentifierQuery(request, schema: schema, connection: connection).count(in: connection)
    }
  }
}
