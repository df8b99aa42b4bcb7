public import BatchRuns
public import SystemPackage

extension Job {
  /// The rows that a job processes.
  public struct Source: Hashable, Sendable {
    package static let queryEntity = "query"

    /// The table or view; `query` for the rows of a query.
    public var entity: String
    /// A SELECT statement whose rows are exported, instead of those of a table or view.
    public var query: String?
    /// The SQL condition that selects rows; nil for all rows.
    public var `where`: String?
    /// The order in which to process rows; if empty, the order of the keys.
    public var orderBy: [OrderTerm]
    /// The maximum number of rows to select.
    public var limit: Int?
    /// Confirms that an update or delete without `where` is meant for every row.
    public var everything: Bool
    /// What to do with a row that no longer matches `where` when its chunk is processed.
    public var recheck: Recheck
    /// An identifier file that selects the rows instead of `where`.
    public var identifiers: FilePath?
    /// The columns that identify a row of a query, a view or a table without a key.
    public var key: [String]?
    /// Exports only the rows that have changed since the last completed run; nil for all.
    public var since: Since?
    /// Exports only the rows that have changed since the last completed run, as a log has them; nil for all.
    public var changes: Changes?

    /// Makes a source; all but the entity have defaults.
    public init(
      entity: String,
      where: String? = nil,
      orderBy: [OrderTerm] = [],
      limit: Int? = nil,
      everything: Bool = false,
      recheck: Recheck = .row,
      identifiers: FilePath? = nil,
      key: [String]? = nil,
      since: Since? = nil,
      changes: Changes? = nil
    ) {
      self.entity = entity
      self.where = `where`
      self.orderBy = orderBy
      self.limit = limit
      self.everything = everything
      self.recheck = recheck
      self.identifiers = identifiers
      self.key = key
      self.since = since
      self.changes = changes
    }

    /// Makes a source from the rows of a SELECT statement, which some of its columns identify.
    public init(
      query: String,
      key: [String],
      where: String? = nil,
      orderBy: [OrderTerm] = [],
      limit: Int? = nil,
      recheck: Recheck = .row,
      identifiers: FilePath? = nil,
      since: Since? = nil
    ) {
      self.init(
        entity: Self.queryEntity,
        where: `where`,
        orderBy: orderBy,
        limit: limit,
        recheck: recheck,
        identifiers: identifiers,
        key: key,
        since: since
      )
      self.query = query
    }
  }

  /// A column to order rows by.
  public struct OrderTerm: Hashable, Sendable, CustomStringConvertible {
    /// The column.
    public var column: String
    /// Whether the largest value comes first.
    public var descending: Bool

    /// Makes a term from its parts.
    public init(_ column: String, descending: Bool = false) {
      self.column = column
      self.descending = descending
    }

    /// Parses a term of a job file: a column, preceded by `-` for descending order.
    public init(parsing text: String) {
      descending = text.hasPrefix("-")
      column = descending ? String(text.dropFirst()) : text
    }

    /// Splits a term that was mistakenly written as in SQL, such as `id desc, name`.
    static func terms(ofSQL text: String) -> [String] {
      text.split(separator: ",").map { term in
        let words = term.split(separator: " ")
        let isDescending = words.count == 2 && words[1].lowercased() == "desc"
        return (isDescending ? "-" : "") + (words.first.map(String.init) ?? "")
      }
    }

    /// The job file's form of a term written as in SQL, such as `id DESC`; nil for any other term.
    package var meantBySQL: String? {
      let words = column.split(separator: " ")
      guard words.count == 2, ["asc", "desc"].contains(words[1].lowercased()) else { return nil }
      return Self.terms(ofSQL: column).first
    }

    /// The term as a job file writes it.
    public var description: String { descending ? "-\(column)" : column }
  }
}
