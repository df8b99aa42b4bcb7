public import BatchIdentifiers
import Synchronization

/// The changes that a save made to one store: only identifiers, which can be sent anywhere.
public struct ModelChanges: Sendable {
  /// The inserted rows.
  public var inserted: [PersistentIdentifier]
  /// The updated rows.
  public var updated: [PersistentIdentifier]
  /// The deleted rows.
  public var deleted: [PersistentIdentifier]

  /// Describes changes that were made elsewhere.
  public init(
    inserted: [PersistentIdentifier] = [],
    updated: [PersistentIdentifier] = [],
    deleted: [PersistentIdentifier] = []
  ) {
    self.inserted = inserted
    self.updated = updated
    self.deleted = deleted
  }

  var count: Int { inserted.count + updated.count + deleted.count }
}

/// The saves of other contexts that a context has not merged yet.
///
/// Any thread adds to it; the context empties it when it is next used.
final class ContextInbox: Sendable {
  enum Content {
    case changes([ModelChanges])
    /// There were too many changes to keep individually.
    case everything
  }

  private static let limit = 10_000

  private let contents = Lock<(content: Content, count: Int)>((.changes([]), 0))
  private let isFilled = Atomic<Bool>(false)

  var hasChanges: Bool { isFilled.load(ordering: .acquiring) }

  func add(_ changes: ModelChanges) {
    contents.withLock { contents in
      guard case .changes(var all) = contents.content else { return }
      contents.count += changes.count
      if contents.count > Self.limit {
        contents.content = .everything
      } else {
        contents.content = .changes([])
        all.append(changes)
        contents.content = .changes(all)
      }
      isFilled.store(true, ordering: .releasing)
    }
  }

  func take() -> Content {
    contents.withLock { contents in
      defer { contents = (.changes([]), 0) }
      isFilled.store(false, ordering: .releasing)
      return contents.content
    }
  }
}

final class ChangeBroadcast: Sendable {
  private struct Listeners {
    var inboxes: [ObjectIdentifier: ContextInbox] = [:]
    var streams: [Int: AsyncStream<ModelChanges>.Continuation] = [:]
    var nextStream = 0
  }

  private let listeners = Lock(Listeners())

  func add(_ inbox: ContextInbox) {
    listeners.withLock { $0.inboxes[ObjectIdentifier(inbox)] = inbox }
  }

  func remove(_ inbox: ContextInbox?) {
    guard let inbox else { return }
    listeners.withLock { $0.inboxes[ObjectIdentifier(inbox)] = nil }
  }

  func send(_ changes: ModelChanges, except own: ContextInbox?) {
    guard changes.count > 0 else { return }
    let (inboxes, streams) = listeners.withLock {
      (Array($0.inboxes.values), Array($0.streams.values))
    }
    for inbox in inboxes where inbox !== own { inbox.add(changes) }
    for stream in streams { stream.yield(changes) }
  }

  func stream(keeping count: Int) -> AsyncStream<ModelChanges> {
    AsyncStream(bufferingPolicy: .bufferingNewest(count)) { continuation in
      let number = listeners.withLock { listeners in
        listeners.nextStream += 1
        listeners.streams[listeners.nextStream] = continuation
        return listeners.nextStream
      }
      continuation.onTermination = { [weak self] _ in
        self?.listeners.withLock { listeners in listeners.streams[number] = nil }
      }
    }
  }
}

extension ModelContainer {
  /// Reports subsequent saves of contexts of this container.
  ///
  /// It corresponds to the did-save notification of Core Data.
  ///
  /// - Parameter count: The number of elements to buffer for a slow reader; older ones are lost.
  /// - Returns: A stream with one element per save and store.
  public func savedChanges(keeping count: Int = 256) -> AsyncStream<ModelChanges> {
    changes.stream(keeping: count)
  }
}
