import BatchRuns
public import BatchIdentifiers
import BatchPlatform
import BatchSQLite

extension ModelContext {
  /// Fetches the history of a store, oldest transaction first.
  ///
  /// - Parameters:
  ///   - token: The token to continue after; nil for the beginning.
  ///   - store: The index of the store in the container; with a token, that of the token's store.
  ///   - limit: The maximum number of transactions; for more, call again with the last token.
  /// - Returns: The transactions; empty if no save was ever recorded.
  /// - Throws: `BatchError` with code `historyTokenExpired` if transactions after the token were
  ///   deleted, or if the store is older than the token, as after a backup was restored;
  ///   `foreignIdentifier` for a token of another store; `invalidSQL` for a limit below 0, or if
  ///   there is no store with the index.
  /// - Complexity: O(*n*) in the returned changes.
  public func fetchHistory(
    after token: HistoryToken? = nil,
    inStore store: Int = 0,
    limit: Int = 1000
  ) throws(BatchError) -> [HistoryTransaction] {
    try throwNoted()
    guard limit >= 0 else {
      throw BatchError(.invalidSQL, "the limit is \(limit)", remedy: "give 0 or more")
    }
    let store = try token.map { token throws(BatchError) in try place(of: token) } ?? store
    try container.requireStore(at: store)
    let connection = try connection(to: store)
    return try connection.transaction(.deferred) { () throws(BatchError) in
      let isThere = try HistoryLog.exists(in: connection)
      if let token { try refuseExpired(token, isThere: isThere, in: connection) }
      guard isThere else { return [] }
      let identity = container.stores[store].identity.uuid
      let saves = try connection.prepare(
        "SELECT id, saved_at, author, mark FROM _batch_history WHERE id > ? ORDER BY id LIMIT ?"
      )
      try saves.bind(token?.transaction ?? 0, at: 1)
      try saves.bind(Int64(limit), at: 2)
      var transactions: [HistoryTransaction] = []
      while try saves.step() {
        let number = saves.integer(at: 0)
        transactions.append(
          HistoryTransaction(
            token: HistoryToken(
              storeIdentifier: identity,
              transaction: number,
              mark: saves.integer(at: 3)
            ),
            timestamp: Date(timeIntervalSince1970: Double(saves.integer(at: 1)) / 1000),
            author: saves.isNull(at: 2) ? nil : saves.text(at: 2),
            changes: try changes(ofSave: number, store: identity, in: connection)
          )
        )
      }
      return transactions
    }
  }

  /// Deletes the history of a store before a transaction, which is kept.
  ///
  /// - Throws: `BatchError` with code `foreignIdentifier` for a token of another store; `busy` and
  ///   other errors of SQLite. Nothing is then deleted.
  /// - Complexity: O(*n*) in the deleted changes, in one transaction.
  public func deleteHistory(before token: HistoryToken) throws(BatchError) {
    try throwNoted()
    let store = try place(of: token)
    let writer = try writer(to: store)
    try container.turns[store].withLock { _ throws(BatchError) in
      try writer.transaction(.immediate) { () throws(BatchError) in
        guard try HistoryLog.exists(in: writer) else { return }
        let end = SQLValue.integer(token.transaction)
        try writer.execute(
          """
          DELETE FROM _batch_history_value
          WHERE change IN (SELECT id FROM _batch_history_change WHERE save < ?)
          """,
          end
        )
        try writer.execute("DELETE FROM _batch_history_change WHERE save < ?", end)
        try writer.execute("DELETE FROM _batch_history WHERE id < ?", end)
      }
    }
  }

  private func place(of token: HistoryToken) throws(BatchError) -> Int {
    if let place = container.stores.firstIndex(where: { $0.identity.uuid == token.storeIdentifier })
    {
      return place
    }
    throw BatchError(
      .foreignIdentifier,
      "the token belongs to a store that this container does not have",
      at: token.storeIdentifier
    )
  }

  private func refuseExpired(
    _ token: HistoryToken,
    isThere: Bool,
    in connection: Connection
  ) throws(BatchError) {
    func number(_ sql: String) throws(BatchError) -> Int64? {
      guard isThere, case .integer(let number) = try connection.value(sql) else { return nil }
      return number
    }
    let first = try number("SELECT min(id) FROM _batch_history")
    // Deleted transactions count too.
    let last = try number("SELECT seq FROM sqlite_sequence WHERE name = '_batch_history'") ?? 0
    let reason: String
    if let first, token.transaction < first - 1 {
      reason = "the history after transaction \(token.transaction) begins with \(first)"
    } else if token.transaction > last {
      reason = "the history ends with transaction \(last), before \(token.transaction)"
    } else {
      // The transaction of the token may be deleted if it is the last deleted one.
      let mark = try number(
        """
        SELECT mark FROM _batch_history WHERE id = \(token.transaction)
        UNION ALL SELECT previous FROM _batch_history WHERE id = \(token.transaction + 1) LIMIT 1
        """
      )
      if mark == token.mark { return }
      reason = "transaction \(token.transaction) is not the token's: a backup was restored"
    }
    throw BatchError(
      .historyTokenExpired,
      reason,
      at: token.storeIdentifier,
      remedy: "fetch everything again, and the history from its beginning"
    )
  }

  private func changes(
    ofSave number: Int64,
    store: String,
    in connection: Connection
  ) throws(BatchError) -> [HistoryChange] {
    let rows = try connection.prepare(
      "SELECT id, entity, key, kind FROM _batch_history_change WHERE save = ? ORDER BY id"
    )
    try rows.bind(number, at: 1)
    var changes: [HistoryChange] = []
    while try rows.step() {
      guard case .blob(let key) = rows.value(at: 2),
        let kind = HistoryChange.Kind(rawValue: rows.text(at: 3))
      else { continue }
      let space = IdentifierSpace(storeIdentifier: store, entityName: rows.text(at: 1))
      let values = try values(ofChange: rows.integer(at: 0), in: connection)
      changes.append(
        HistoryChange(
          kind: kind,
          identifier: space.identifier(.encoded(try EncodedKey(validating: key))),
          updatedAttributes: kind == .update ? values.keys.sorted() : [],
          tombstone: kind == .delete ? values : [:]
        )
      )
    }
    return changes
  }

  private func values(
    ofChange change: Int64,
    in connection: Connection
  ) throws(BatchError) -> [String: SQLValue] {
    let rows = try connection.prepare(
      "SELECT attribute, value FROM _batch_history_value WHERE change = ?"
    )
    try rows.bind(change, at: 1)
    var values: [String: SQLValue] = [:]
    while try rows.step() { values[rows.text(at: 0)] = rows.value(at: 1) }
    return values
  }
}
