import BatchJobs
public import BatchPipeline
public import BatchRuns
import BatchIdentifiers

extension BatchRun {
  /// Makes a run that loads a sequence of records into the table of a class, without objects: a
  /// ``BatchInsertRequest`` that resumes, skips, waits and reports like any run.
  ///
  ///     let run = BatchRun(
  ///       container,
  ///       named: "import-orders",
  ///       loading: lines,
  ///       into: Order.self,
  ///       policy: RunPolicy(skip: .init(limit: 100), checkpoint: .init(path: "import.batch"))
  ///     ) { line, row in
  ///       row.set(\.number, to: try line.number())
  ///       row.set(\.price, to: line.price)
  ///     }
  ///     let summary = try await run.run().get()
  ///
  /// The ledger's entry of a chunk commits with its rows. So with a checkpoint, the same call resumes
  /// the run, however it ended, if it is given the same records in the same order from the first one
  /// on: it reads again those that are done, and inserts the others. A hash of what `fill` sets, except
  /// dates, recognizes those that the checkpoint last recorded; others are refused with `BatchError` of
  /// code `inputChanged` before a row is inserted. So `fill` must set the same values for the same
  /// record, except dates.
  ///
  /// A record fails if `fill` throws, if a value does not fit its property, or if the database refuses
  /// the row. With `policy.skip` it is recorded by number, with the error that names property and value,
  /// and the others of its chunk are inserted. Otherwise its chunk is rolled back, and the run fails:
  /// ``BatchIdentifiers/BatchError/insertFailure`` of the summary's `failure` has index, property and
  /// value. An error that the sequence throws fails the run as well. Committed chunks stay.
  ///
  /// Records are read as they are written; at most 16 MB of their values are held. A chunk ends early
  /// after 4 MB, and with the first record that comes a second after its first one. A stop waits three
  /// seconds for the records of a chunk, then it cancels `next()`. Until the sequence ends,
  /// `RunSummary/total` is the number of records that are done, and no remaining time is known.
  ///
  /// Hooks and validation are not called, as in a ``BatchInsertRequest``.
  ///
  /// - Parameters:
  ///   - container: The container with the store and the class.
  ///   - name: The name of the work: at most 100 characters out of `A-Z a-z 0-9 . _ -`. A
  ///     checkpoint of other work is refused.
  ///   - records: The records; each call of ``run(onEvent:answer:)`` reads them again.
  ///   - model: The class whose rows are inserted.
  ///   - conflict: How to treat rows that violate a unique constraint. Rows left out by
  ///     ``BatchInsertRequest/Conflict/ignore`` count as unchanged.
  ///   - policy: Chunks, retries, skipping, throttle, limits, and the path of the checkpoint. One
  ///     worker reads; a canary and `skip.ratio` are refused with code `invalidJob`, since the number of
  ///     records is unknown.
  ///   - undo: How long to keep the changes of the run, so that it can be undone; nil to keep none.
  ///   - options: Options that may differ from one run to the next.
  ///   - fill: Fills the row of a record, and has no other effect: a resumed run calls it again.
  public convenience init<Records: AsyncSequence & Sendable, Model: PersistentModel>(
    _ container: ModelContainer,
    named name: String,
    loading records: Records,
    into model: Model.Type,
    conflict: BatchInsertRequest<Model>.Conflict = .error,
    policy: RunPolicy = RunPolicy(),
    undo: Job.Undo? = nil,
    options: Options = Options(),
    _ fill:
      @escaping @Sendable (
        _ record: Records.Element, _ row: inout BatchInsertRequest<Model>.Row
      ) throws -> Void
  ) {
    let source = RecordSource(mapping: Model.mapping, resolution: conflict.resolution) {
      var iterator = records.makeAsyncIterator()
      return RecordSource.Reader { rows, feed in
        guard let record = try await iterator.next(isolation: feed) else { return false }
        do {
          _ = try rows.fillRow {
            var row = BatchInsertRequest<Model>.Row(rows: rows)
            try fill(record, &row)
            return false
          }
        } catch {
          rows.noteFailure(error)
        }
        return true
      }
    }
    self.init(
      container,
      named: name,
      .records(source),
      policy: policy,
      undo: undo,
      options: options
    )
  }
}
