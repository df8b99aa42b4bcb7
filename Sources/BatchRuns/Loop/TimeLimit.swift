package import BatchIdentifiers

/// Runs `body` on another thread, and blocks this one until it returns, at most for `limit`.
package func withTimeLimit<Value: Sendable>(
  _ limit: Duration?,
  _ body: @escaping @Sendable () throws(BatchError) -> Value
) throws(BatchError) -> Value {
  guard let limit else { return try body() }
  let answer = HandlerAnswer<Value>(within: limit)
  try DetachedThread.start { answer.give(Result(catching: body)) }
  return try answer.block()
}
