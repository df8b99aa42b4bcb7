@testable import BatchEngine
import BatchIdentifiers

/// What goes wrong, and what operators ask for.
extension Simulation {
  /// Triggers an external event.
  func fault() async {
    let living = processes.filter(\.isAlive)
    faultsLeft -= 1
    switch choices.below(13) {
    case 0:
      if let process = living.first { crash(process) }
    case 1: losePower()
    case 2: schedule(.boot(isBlind: false), after: 0)
    case 3:
      if file.exists { schedule(.boot(isBlind: true), after: 0) }
    case 4:
      for process in living where process.logic != nil {
        note("is told to stop", process)
        occur(.stop)
        schedule(.answer(.stop), after: 0, for: process)
      }
    case 5:
      note("an operator cancels the run")
      occur(.cancellation)
      isCancelled = true
    case 6: hold(\.isPaused, true)
    case 7: hold(\.isFlagged, true)
    case 8: hold(\.freeDisk, 0)
    case 11: hold(\.workers, choices.below(scenario.workers + 1))
    case 9, 10:
      if store.hasBackup {
        note("the backup is restored")
        occur(.restoredBackup)
        store.restore()
      } else if file.exists {
        note("a backup is made")
        store.backUp()
      }
    default:
      note("an operator changes a setting")
      occur(.changedSetting)
      policy = scenario.policy(&choices)
    }
  }

  private func hold<Value>(
    _ condition: WritableKeyPath<RunThrottle.Conditions, Value>,
    _ value: Value
  ) {
    note("an operator holds the run")
    conditions[keyPath: condition] = value
    schedule(.ease, after: moment(upTo: 800))
  }

  /// Every hold of the run is over.
  func ease() {
    note("an operator lets the run go on")
    conditions = RunThrottle.Conditions(freeDisk: 1 << 30)
  }

  /// Makes a process crash, if it does so here.
  func mayCrash(_ process: SimulatedProcess) throws(BatchError) {
    if process.isAlive, goesWrong(oncePer: 32) {
      if choices.once(in: 3) { losePower() } else { crash(process) }
    }
    if !process.isAlive { throw .crashed }
  }

  private func crash(_ process: SimulatedProcess) {
    note("crashes", process)
    occur(.crash)
    close(process)
  }

  private func losePower() {
    note("the power fails")
    occur(.powerFailure)
    if store.durable.ledger != store.content.ledger { occur(.lostCommit) }
    store.losePower()
    let kept = choices.below(file.unsyncedCount + 1)
    if kept < file.unsyncedCount { occur(.lostRecord) }
    file.losePower(keeping: kept)
    for process in processes where process.isAlive { crash(process) }
  }
}
