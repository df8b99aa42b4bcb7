#if PostgreSQL
import BatchIdentifiers

package final class PostgresInterrupter: Sendable {
  private struct State {
    var isInterrupted = false
    var links: [ServerLink] = []
  }

  private let parent: PostgresInterrupter?
  /// Receives what the sessions wait for.
  let waits: ServerWaits?
  private let state = Lock(State())

  /// Creates an interrupter that `parent` also triggers; without `waits`, uses the parent's.
  package init(within parent: PostgresInterrupter? = nil, telling waits: ServerWaits? = nil) {
    self.parent = parent
    self.waits = waits ?? parent?.waits
  }

  package var isInterrupted: Bool {
    state.withLock { $0.isInterrupted } || parent?.isInterrupted == true
  }

  /// Makes running statements and all later ones fail with an error of code `interrupted`, within a
  /// second even if the server does not answer.
  package func interrupt() {
    let links = state.withLock { state -> [ServerLink] in
      guard !state.isInterrupted else { return [] }
      state.isInterrupted = true
      return state.links
    }
    for link in links { link.end() }
  }

  func attach(_ link: ServerLink) {
    let isLate = state.withLock { state in
      state.links.append(link)
      return state.isInterrupted
    }
    if isLate { link.end() }
    parent?.attach(link)
  }

  func detach(_ link: ServerLink) {
    state.withLock { state in state.links.removeAll { $0 === link } }
    parent?.detach(link)
  }
}
#endif
