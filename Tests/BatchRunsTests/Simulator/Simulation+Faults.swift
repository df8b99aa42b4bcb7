@testable import BatchRuns
import BatchIdentifiers

/// What goes wrong, and what operators ask for.
extension Simulation {
  /// Triggers an external event.
  func fault() {
    let living = processes.filter(\.isAlive)
    faultsLeft -= 1
    switch choices.below(13) {
    case 0:
      if let process = living.first { kill(process) }
    case 1: losePower()
    case 2: schedule(.boot(isBlind: false), after: 0)
    case 3:
      if file.exists { schedule(.boot(isBlind: true), after: 0) }
    case 4:
      for process in living {
        note("is told to stop", process)
        occur(.stop)
        process.stop.stop()
        process.stoppedAt = process.stoppedAt ?? now
      }
    case 5:
      note("an operator cancels the run")
      occur(.cancellation)
      control.isCancelled = true
      for process in living { process.stoppedAt = process.stoppedAt ?? now }
    case 6:
      note("an operator pauses the run")
      control.isPaused = true
      schedule(.ease, after: moment(upTo: 800))
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
      let (name, value) = scenario.change(&choices)
      control.settings[name] = value
      paceWasChanged = paceWasChanged || name != "chunk.size"
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
    control.isPaused = false
    control.resumptions = (control.resumptions ?? 0) + 1
    canary.resume()
  }

  /// Kills a process, perhaps by a power failure.
  func crash(_ process: SimulatedProcess) {
    if choices.once(in: 3) { losePower() } else { kill(process) }
  }

  private func kill(_ process: SimulatedProcess) {
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
    for process in processes where process.isAlive { kill(process) }
  }
}
