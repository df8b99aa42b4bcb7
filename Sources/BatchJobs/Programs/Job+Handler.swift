public import BatchIdentifiers
package import BatchRuns

extension Job {
  /// Makes the handler of a transform, and the pool of its programs, if any.
  package func handler(
    of transform: Transform,
    columns: TransformColumns,
    kinds: CommandHandler.Kinds = .init(),
    among handlers: [String: TransformHandler]
  ) throws(BatchError) -> (any RowHandler, ChildPool?) {
    let (handler, children) = try program(
      of: transform,
      columns: columns,
      kinds: kinds,
      among: handlers
    )
    guard transform.invalidText == .fail else { return (handler, children) }
    return (ValidTextHandler(handler, writes: columns.writes.count), children)
  }

  private func program(
    of transform: Transform,
    columns: TransformColumns,
    kinds: CommandHandler.Kinds,
    among handlers: [String: TransformHandler]
  ) throws(BatchError) -> (any RowHandler, ChildPool?) {
    switch transform.program {
    case .handler(let name):
      do throws(BatchError) {
        guard let registered = handlers[name] else {
          throw BatchError.unknownHandler(name, among: handlers.keys.sorted())
        }
        return (try registered.handler(for: columns), nil)
      } catch {
        throw error.located(at: place(of: .handler))
      }
    case .command(let arguments):
      try CommandHandler.checkNames(of: columns, in: self)
      do throws(BatchError) {
        let handler = try CommandHandler(
          arguments,
          columns: columns,
          kinds: kinds,
          timeout: transform.timeout,
          job: self
        )
        return (handler, handler.pool)
      } catch {
        throw error.located(at: place(of: .command))
      }
    }
  }
}

extension BatchError {
  fileprivate static func unknownHandler(_ name: String, among names: [String]) -> BatchError {
    // A list of the registered handlers shows whether this is the wrong executable.
    let listed = remedyListing(names, kind: "registered handlers")
    let remedy =
      if names.isEmpty {
        "this program has none: handlers need your own executable, see Handlers.md"
      } else if let nearest = nearestName(to: name, among: names) {
        "did you mean \(nearest.quotedForMessage)? \(listed)"
      } else {
        listed
      }
    return BatchError(
      .unknownHandler,
      "there is no handler \(name.quotedForMessage)",
      remedy: remedy
    )
  }
}

extension BatchError.Code {
  /// The program has not registered the handler that the job names.
  public static let unknownHandler = Self(rawValue: "unknownHandler")
}
