public import BatchIdentifiers
import Synchronization

/// What a save changed in one store: identifiers only, which may be sent anywhere.
public struct ModelChanges: Sendable {
  /// The rows that were inserted.
  public var inserted: [PersistentIdentifier]
  /// The rows that were updated.
  public var updated: [PersistentIdentifier]
  /// The rows that were deleted.
  public var deleted: [PersistentIdentifier]

  /// Makes a description of changes that were done elsewhere.
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

/// What other contexts saved and this one has not merged yet.
///
/// It is filled from any thread, and emptied by the context when it is next used.
final class ContextInbox: Sendable {
  /// What is merged.
  enum Content {
    case changes([ModelChanges])
    /// There were more than are kept one by one.
    case everything
  }

  /// How many identifiers are kept one by one.
  private static let limit = 10_000

  private let contents = Lock<(content: Content, count: Int)>((.changes([]), 0))
  private let isFilled = Atomic<Bool>(false)

  /// Whether there is something to merge.
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

  /// What is there, which is there no more.
  func take() -> Content {
    contents.withLock { contents in
      defer { contents = (.changes([]), 0) }
      isFilled.store(false, ordering: .releasing)
      return contents.content
    }
  }
}

/// What tells contexts, and whoever else listens, of saves.
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

  /// Notifies everybody of a save but the context that did it.
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
  /// Reports what contexts of this container save from now on.
  ///
  /// Core Data's counterpart is the notification that a context did save.
  ///
  /// - Parameter count: How many elements to buffer for a slow reader; older ones are lost.
  /// - Returns: A stream with one element for each save and store.
  public func savedChanges(keeping count: Int = 256) -> AsyncStream<ModelChanges> {
    changes.stream(keeping: count)
  }
}
