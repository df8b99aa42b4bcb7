import BatchJobs
import BatchPipeline
public import BatchRuns
public import BatchIdentifiers
public import BatchSQLite
import SystemPackage

extension BatchRun {
  /// Makes a run by objects: a closure gets the identifiers that a fetch finds, one chunk at a
  /// time, each with a new background context.
  ///
  ///     let run = BatchRun(
  ///       container,
  ///       named: "reminders",
  ///       fetching: FetchDescriptor<Order>(predicate: #Predicate { $0.paidAt == nil }),
  ///       policy: RunPolicy(checkpoint: .init(path: "reminders.batch"))
  ///     ) { context, identifiers in
  ///       for order in try context.fetch(identifiers, as: Order.self) {
  ///         order.reminders += 1
  ///       }
  ///     }
  ///     let summary = try await run.run()
  ///
  /// The changes of the closure are saved when it returns, in the transaction that records the
  /// chunk as done. If another connection changes a row before that, the chunk starts over in
  /// another context. So the closure may be called again for the same identifiers, and its effects
  /// outside the context must tolerate this. It cannot save by itself.
  ///
  /// With a checkpoint, the same call resumes the run, however it ended: it fetches only if there
  /// is no unfinished run, and otherwise continues with the identifiers selected before. Without a
  /// checkpoint, nothing is recorded, and a chunk without changes takes no lock, so even a
  /// read-only store can be processed.
  ///
  /// - Parameters:
  ///   - container: The container with the stores and classes.
  ///   - name: The name of the work: at most 100 characters out of `A-Z a-z 0-9 . _ -`. A
  ///     checkpoint of other work is refused.
  ///   - descriptor: The objects to fetch; the predicate is read immediately.
  ///   - policy: Chunks, workers, retries, skipping, throttle, limits, and the path of the
  ///     checkpoint.
  ///   - missingRows: How to treat identifiers without a row.
  ///   - timeLimit: The maximum time of the closure for a chunk; nil for no limit. If it takes
  ///     longer, the run fails with `BatchError` of code `handlerTimeout`.
  ///   - undo: How long to keep the changes of the run, so that
  ///     ``init(undoing:run:only:overwriting:options:)`` and `batch undo CHECKPOINT` can undo it;
  ///     nil to keep none. This includes all rows of the store that are inserted, changed or
  ///     deleted, also by triggers and cascades; a chunk that writes a virtual table fails with
  ///     `BatchError` of code `unrecordable`.
  ///   - options: Options that may differ from one run to the next.
  ///   - body: Changes objects of the context, and keeps none of them. It is called on the threads
  ///     of the workers.
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

  /// Makes a run by objects over the identifiers that an SQL condition finds.
  ///
  /// See the initializer that takes a `FetchDescriptor`.
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

  /// Makes a run by objects over identifiers that a closure selects from the container's first
  /// store.
  ///
  /// See the initializer that takes a `FetchDescriptor`. `selecting` is called only if there is no
  /// unfinished run.
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

  /// Makes a run by objects over a list of identifiers.
  ///
  /// See the initializer that takes a `FetchDescriptor`. The list may belong to any store of the
  /// container; nil resumes an unfinished run, which has its own list. If there is such a run, a
  /// given list must be the same.
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
      .list(identifiers.map(container.named)),
      policy: policy,
      missingRows: missingRows,
      timeLimit: timeLimit,
      undo: undo,
      options: options,
      body
    )
  }

  convenience init(
    _ container: ModelContainer,
    named name: String,
    _ selection: ContextSelection,
    policy: RunPolicy,
    missingRows: MissingRows = .counted,
    timeLimit: Duration? = nil,
    undo: Job.Undo?,
    options: Options,
    _ body: @escaping ChunkBody = { _, _ in }
  ) {
    let place = (try? selection.store(of: container)) ?? 0
    var kind = ProgramWork.Kind.objects
    if case .records = selection { kind = .load }
    var cause = ProgramWork(
      kind,
      name: name,
      entity: selection.entity ?? "",
      database: .init(path: FilePath(container.stores[place].path)),
      policy: policy
    )
    cause.hooks = options.hooks
    cause.report = options.report
    cause.undo = undo
    cause.fetch = selection.fetch
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
