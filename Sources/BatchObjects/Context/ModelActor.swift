public import BatchIdentifiers

/// An actor with its own context.
///
///     actor Importer: ModelActor {
///       nonisolated let modelContainer: ModelContainer
///       nonisolated let modelExecutor: any SerialModelExecutor
///
///       init(_ container: ModelContainer) {
///         modelContainer = container
///         modelExecutor = DefaultSerialModelExecutor(modelContext: ModelContext(container))
///       }
///     }
public protocol ModelActor: Actor {
  /// The container of the context.
  nonisolated var modelContainer: ModelContainer { get }
  /// The executor that runs the actor's work.
  nonisolated var modelExecutor: any SerialModelExecutor { get }
}

extension ModelActor {
  /// The executor in the form that Swift requires.
  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe modelExecutor.asUnownedSerialExecutor()
  }

  /// The context of the actor.
  public var modelContext: ModelContext { modelExecutor.modelContext }

  /// The object with an identifier, if it exists and is a `Model`.
  public subscript<Model: ManagedObject>(
    _ identifier: PersistentIdentifier,
    as type: Model.Type
  ) -> Model? {
    modelContext[identifier, as: type]
  }
}
