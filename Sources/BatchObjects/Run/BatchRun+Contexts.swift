import BatchJobs
import BatchPipeline
public import BatchRuns
public import BatchIdentifiers
public import BatchSQLite
import SystemPackage

extension BatchRun {
  /// A run by objects: a closure gets the identifiers that a fetch finds, one chunk at a time, each
  /// with a new background context.
  ///
  ///     let run = BatchRun(
  ///       container,
  ///       named: "reminders",
  ///       fetching: FetchDescriptor<Order>(predicate: #Predicate { $0.paidAt == nil }),
  ///       policy: RunPolicy(checkpoint: .init(path: "reminders.batch"))
  ///     ) { context, identifiers in
  ///       for order in try context.fetch(identifiers, as: Order.self, skippingMissing: true) {
  ///         order.reminders += 1
  ///       }
  ///     }
  ///     let summary = try await run.run()
  ///
  /// What the closure changes is saved when it returns, in the transaction that records the chunk as done.
  /// If another connection changes a row before that, the chunk starts over in another context. So the
  /// closure may be called again for the same identifiers: its effects outside the context must tolerate
  /// that. It cannot save by itself.
  ///
  /// With a checkpoint, the same call resumes the run, however it ended: it fetches only if there is no
  /// unfinished run, and otherwise works through the identifiers selected first. Without one, nothing is
  /// recorded, and a chunk that changes nothing takes no lock, so a read-only store can be processed.
  ///
  /// - Parameters:
  ///   - container: The container with its stores and classes.
  ///   - name: The name of the work: `A-Z a-z 0-9 . _ -`, at most 100 characters. A checkpoint of other work
  ///     is refused.
  ///   - descriptor: What to fetch; the predicate is read at once.
  ///   - policy: Chunks, workers, retries, skipping, throttle, limits, and the path of the checkpoint.
  ///   - missingRows: What to do with identifiers without a row.
  ///   - timeLimit: How long the closure may take for a chunk; nil for no limit. If it exceeds that, the run fails
  ///     with `BatchError` of code `handlerTimeout`.
  ///   - undo: How long to keep what the run changes, so that
  ///     ``init(undoing:run:only:overwriting:options:)`` and `batch undo CHECKPOINT` can undo it; nil to
  ///     keep nothing. It covers all rows of the store that are inserted, changed or deleted, also by
  ///     triggers and cascades; a chunk that writes a virtual table fails with `BatchError` of code
  ///     `unrecordable`.
  ///   - options: What may differ from one run to the next.
  ///   - body: Changes objects of the context, and keeps none. Called on the threads of the workers.
  public convenience init<Model: PersistentModel>(
    _ container: ModelContainer,
    named name: String,
    fetching descriptor: FetchDescriptor<Model>,
    policy: RunPolicy = RunPolicy(),
    missingRows: MissingRows = .counted,
    timeLimit: Duration? = nil,
    undo: Job.Undo? = nil,
    options: Options = Options(),
    _ body: @escaping ChunkBody
  ) {
    self.init(
      container,
      named: name,
      .query(container.query(for: descriptor)),
      policy: policy,
      missingRows: missingRows,
      timeLimit: timeLimit,
      undo: undo,
      options: options,
      body
    )
  }

  /// A run by objects over the identifiers that an SQL condition finds; see the initializer that takes
  /// a `FetchDescriptor`.
  public convenience init(
    _ container: ModelContainer,
    named name: String,
    fetching request: FetchRequest,
    policy: RunPolicy = RunPolicy(),
    missingRows: MissingRows = .counted,
    timeLimit: Duration? = nil,
    undo: Job.Undo? = nil,
    options: Options = Options(),
    _ body: @escaping ChunkBody
  ) {
    self.init(
      container,
      named: name,
      .query(container.query(for: request)),
      policy: policy,
      missingRows: missingRows,
      timeLimit: timeLimit,
      undo: undo,
      options: options,
      body
    )
  }

  /// A run by objects over identifiers that a closure selects, of the container's first store; see the
  /// initializer that takes a `FetchDescriptor`.
  ///
  /// `selecting` is called only if there is no unfinished run.
  public convenience init(
    _ container: ModelContainer,
    named name: String,
    selecting: @escaping @Sendable () async throws -> IdentifierList,
    policy: RunPolicy = RunPolicy(),
    missingRows: MissingRows = .counted,
    timeLimit: Duration? = nil,
    undo: Job.Undo? = nil,
    options: Options = Options(),
    _ body: @escaping ChunkBody
  ) {
    self.init(
      container,
      named: name,
      .closure(selecting),
      policy: policy,
      missingRows: missingRows,
      timeLimit: timeLimit,
      undo: undo,
      options: options,
      body
    )
  }

  /// A run by objects over a list of identifiers; see the initializer that takes a `FetchDescriptor`.
  ///
  /// The list belongs to any of the container's stores; nil resumes an unfinished run, which has
  /// its own list. If there is one, a given list must be the same.
  public convenience init(
    _ container: ModelContainer,
    named name: String,
    over identifiers: IdentifierList?,
    policy: RunPolicy = RunPolicy(),
    missingRows: MissingRows = .counted,
    timeLimit: Duration? = nil,
    undo: Job.Undo? = nil,
    options: Options = Options(),
    _ body: @escaping ChunkBody
  ) {
    self.init(
      container,
      named: name,
      .list(identifiers),
      policy: policy,
      missingRows: missingRows,
      timeLimit: timeLimit,
      undo: undo,
      options: options,
      body
    )
  }

  private convenience init(
    _ container: ModelContainer,
    named name: String,
    _ selection: ContextSelection,
    policy: RunPolicy,
    missingRows: MissingRows,
    timeLimit: Duration?,
    undo: Job.Undo?,
    options: Options,
    _ body: @escaping ChunkBody
  ) {
    let place = (try? selection.store(of: container)) ?? 0
    var cause = ProgramWork(
      .objects,
      name: name,
      entity: selection.entity ?? "",
      database: .init(path: FilePath(container.stores[place].path)),
      policy: policy
    )
    cause.hooks = options.hooks
    cause.report = options.report
    cause.undo = undo
    let work = ObjectWork(
      program: cause,
      selection: selection,
      container: container,
      missingRows: missingRows,
      timeLimit: timeLimit,
      fresh: options.fresh,
      body: body
    )
    self.init(work, options: options)
  }
}
