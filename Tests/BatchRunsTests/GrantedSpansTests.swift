@testable import BatchRuns
import Testing

/// Runs whose positions are granted in spans over time, step by step.
@Suite struct GrantedSpansTests {
  private func makeMachine(workers: Int, inOrder: Bool = false) -> RunStateMachine {
    var limits = RunStateMachine.Limits(
      workers: workers,
      inOrder: inOrder,
      retries: 2,
      workersCommit: true
    )
    limits.isGranted = true
    return RunStateMachine(remaining: [], sizing: ChunkSizing(5), limits: limits)
  }

  @Test
  func `a span is closed once all its positions are committed, and the last one ends the run`() {
    var machine = makeMachine(workers: 1)
    #expect(machine.start() == [.claim(besides: [])])
    #expect(machine.grant(0..<10, remaining: [0..<10]) == [.prepare(0..<5, worker: 0)])
    // Another one is asked for before nothing is left to do.
    #expect(
      machine.prepared(0..<5, worker: 0, took: .zero)
        == [.commit(0..<5), .prepare(5..<10, worker: 0), .claim(besides: [0..<10])]
    )
    #expect(machine.claimLater() == [])
    #expect(machine.committed(0..<5, took: .zero) == [])
    #expect(machine.prepared(5..<10, worker: 0, took: .zero) == [.commit(5..<10)])
    #expect(machine.committed(5..<10, took: .zero) == [.close(0..<10)])
    #expect(machine.closed(0..<10) == [.claim(besides: [])])
    #expect(machine.exhausted() == [.end(.completed)])
  }

  @Test func `only as many workers as the store allows are given chunks`() {
    var machine = makeMachine(workers: 3)
    machine.allow(workers: 2)
    _ = machine.start()
    #expect(
      machine.grant(0..<100, remaining: [0..<100])
        == [.prepare(0..<5, worker: 0), .prepare(5..<10, worker: 1)]
    )
    machine.allow(workers: 1)
    // What a worker has is finished, and nothing is given to it then.
    #expect(machine.prepared(5..<10, worker: 1, took: .zero) == [.commit(5..<10)])
    #expect(machine.committed(5..<10, took: .zero) == [])
    #expect(
      machine.prepared(0..<5, worker: 0, took: .zero)
        == [.commit(0..<5), .prepare(10..<15, worker: 0)]
    )
    machine.allow(workers: 3)
    #expect(
      machine.committed(0..<5, took: .zero)
        == [.prepare(15..<20, worker: 2), .prepare(20..<25, worker: 1)]
    )
  }

  @Test func `a lost span is claimed again only after all its chunks have returned`() {
    var machine = makeMachine(workers: 2)
    _ = machine.start()
    #expect(
      machine.grant(0..<20, remaining: [0..<20])
        == [.prepare(0..<5, worker: 0), .prepare(5..<10, worker: 1)]
    )
    #expect(
      machine.prepared(0..<5, worker: 0, took: .zero)
        == [.commit(0..<5), .prepare(10..<15, worker: 0), .claim(besides: [0..<20])]
    )
    #expect(
      machine.prepared(5..<10, worker: 1, took: .zero)
        == [.commit(5..<10), .prepare(15..<20, worker: 1)]
    )
    #expect(machine.claimLater() == [])
    #expect(machine.lost(0..<5) == [])
    #expect(machine.claimAgain() == [.claim(besides: [0..<20])])
    #expect(machine.grant(20..<40, remaining: [20..<40]) == [])
    #expect(machine.lost(5..<10) == [])
    #expect(
      machine.prepared(10..<15, worker: 0, took: .zero)
        == [.discard(10..<15), .prepare(20..<25, worker: 0)]
    )
    #expect(
      machine.failedToPrepare(15..<20, worker: 1)
        == [.discard(15..<20), .prepare(25..<30, worker: 1)]
    )
    #expect(
      machine.prepared(20..<25, worker: 0, took: .zero)
        == [.commit(20..<25), .prepare(30..<35, worker: 0), .claim(besides: [20..<40])]
    )
  }

  @Test func `a lost span drops the chunks held for a retry and can be granted again`() {
    var machine = makeMachine(workers: 2)
    _ = machine.start()
    #expect(
      machine.grant(0..<10, remaining: [0..<10])
        == [
          .prepare(0..<5, worker: 0), .prepare(5..<10, worker: 1), .claim(besides: [0..<10]),
        ]
    )
    #expect(
      machine.failedToPrepare(0..<5, worker: 0, holding: 9, isTransient: true)
        == [.rest(0..<5, attempt: 1)]
    )
    #expect(machine.prepared(5..<10, worker: 1, took: .zero) == [.commit(5..<10)])
    #expect(machine.claimLater() == [])
    #expect(machine.lost(5..<10) == [.discard(0..<5), .claim(besides: [])])
    #expect(machine.rested(0..<5) == [])
    #expect(
      machine.grant(0..<10, remaining: [3..<10])
        == [
          .prepare(3..<8, worker: 0), .prepare(8..<10, worker: 1), .claim(besides: [0..<10]),
        ]
    )
  }

  @Test func `an ordered run finishes one span before the next`() {
    var machine = makeMachine(workers: 2, inOrder: true)
    _ = machine.start()
    #expect(machine.grant(10..<15, remaining: [10..<15]) == [.prepare(10..<15, worker: 0)])
    #expect(machine.prepared(10..<15, worker: 0, took: .zero) == [.commit(10..<15)])
    #expect(machine.committed(10..<15, took: .zero) == [.close(10..<15)])
    #expect(machine.closed(10..<15) == [.claim(besides: [])])
    #expect(machine.grant(0..<5, remaining: [2..<5]) == [.prepare(2..<5, worker: 1)])
  }

  @Test func `workers alternate while preparing and committing take no time`() {
    var machine = makeMachine(workers: 2)
    _ = machine.start()
    var actions = machine.grant(0..<40, remaining: [0..<40])
    var workers: [Int] = []
    while workers.count < 8, let (chunk, worker) = actions.takePreparation() {
      workers.append(worker)
      actions += machine.prepared(chunk, worker: worker, took: .zero)
      actions += machine.committed(chunk, took: .zero)
    }
    #expect(workers == [0, 1, 0, 1, 0, 1, 0, 1])
  }

  @Test func `a worker with a slow commit holds one more chunk while others do the rest`() {
    var machine = makeMachine(workers: 2)
    _ = machine.start()
    var actions = machine.grant(0..<40, remaining: [0..<40])
    var slow: [Range<Int>] = []
    var fast: [Range<Int>] = []
    while let (chunk, worker) = actions.takePreparation() {
      actions += machine.prepared(chunk, worker: worker, took: .zero)
      #expect(actions.contains(.commit(chunk)))
      if worker == 0 {
        slow.append(chunk)
      } else {
        fast.append(chunk)
        actions += machine.committed(chunk, took: .zero)
      }
    }
    #expect(slow.count == 2 && fast.count == 6)
    for chunk in slow { actions += machine.committed(chunk, took: .zero) }
    #expect(actions.contains(.close(0..<40)))
  }

  @Test func `a stopping run does not wait for a claimed span`() {
    var machine = makeMachine(workers: 1)
    #expect(machine.start() == [.claim(besides: [])])
    #expect(machine.stop() == [.end(.stopped)])
  }
}

extension [RunStateMachine.Action] {
  /// Takes out the first chunk that a worker is to prepare.
  fileprivate mutating func takePreparation() -> (chunk: Range<Int>, worker: Int)? {
    for (place, action) in enumerated() {
      guard case .prepare(let chunk, let worker) = action else { continue }
      remove(at: place)
      return (chunk, worker)
    }
    return nil
  }
}
