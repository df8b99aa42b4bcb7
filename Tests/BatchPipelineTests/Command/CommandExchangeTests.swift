@testable import BatchJobs
import BatchTestSupport
import Testing

@testable import BatchPipeline

/// Questions to a program and its answers, without a program.
@Suite struct CommandExchangeTests {
  private let start = ContinuousClock.now

  /// An exchange over the last of a number of rows, which may take a second.
  private func ask(_ count: Int, of total: Int? = nil) -> CommandExchange {
    CommandExchange(
      .init(
        lines: Array(String(repeating: "{}\n", count: count).utf8),
        count: count,
        answeredBefore: (total ?? count) - count,
        chunkCount: total ?? count,
        start: start,
        timeout: .seconds(1)
      ),
      at: start
    )
  }

  /// The same, completely sent.
  private func asked(_ count: Int, of total: Int? = nil) -> CommandExchange {
    var exchange = ask(count, of: total)
    exchange.sent(exchange.unsent.count)
    return exchange
  }

  private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

  @Test func `a question is sent in pieces and released once the program has read it`() {
    var exchange = ask(2)
    #expect(exchange.next(at: start) == .transfer(within: .seconds(1)))
    exchange.sent(4)
    #expect(!exchange.isSent && exchange.unsent.elementsEqual("}\n".utf8))
    exchange.receive("1\n2\n")
    // A program that has answered must still get the rest.
    #expect(exchange.next(at: start) == .transfer(within: .seconds(1)))
    exchange.sent(2)
    #expect(exchange.isSent && exchange.unsent.isEmpty)
    #expect(exchange.next(at: start) == .finish)
    #expect(text(exchange.answers) == "1\n2\n")
  }

  @Test func `answers arrive complete however the pipe splits them`() {
    for seed in 0..<200 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      let count = Int.random(in: 1...20, using: &random)
      let lines = (0..<count).map { String(repeating: "x", count: $0 * 7 % 11) + "\n" }.joined()
      var rest = Array(lines.utf8)[...]
      var exchange = asked(count)
      while !rest.isEmpty {
        #expect(exchange.next(at: start) == .transfer(within: .seconds(1)), "seed \(seed)")
        let part = rest.prefix(Int.random(in: 0...9, using: &random))
        exchange.receive(part)
        rest = rest.dropFirst(part.count)
      }
      #expect(exchange.next(at: start) == .finish, "seed \(seed)")
      #expect(exchange.takeSurplus(upTo: 10).isEmpty)
      #expect(text(exchange.answers) == lines, "seed \(seed)")
    }
  }

  @Test(arguments: ["1\n2\n3\n", "1\n2\n3", "1\n2\n\n"])
  func `output after the last answer is kept separately`(written: String) {
    var exchange = asked(2)
    exchange.receive(written)
    #expect(exchange.next(at: start) == .finish)
    #expect(text(exchange.takeSurplus(upTo: 1)) == text(Array(written.utf8.dropFirst(4).prefix(1))))
    #expect(text(exchange.answers) == "1\n2\n")
  }

  @Test func `a program that gives too many answers ends the exchange immediately`() {
    var exchange = ask(2)
    exchange.receive("1\n2\n3\n")
    #expect(exchange.next(at: start) == .finish)
    #expect(!exchange.isSent)
    #expect(text(exchange.takeSurplus(upTo: 10)) == "3\n")
  }

  @Test func `the error of a program that ends early states its progress`() {
    var exchange = asked(3, of: 10)
    exchange.receive("1\n2")
    exchange.close()
    #expect(exchange.next(at: start) == .findEnd)
    #expect(exchange.fault(ofEnd: nil).message == "closed its output after 8 of 10 answers")
    #expect(exchange.fault(ofEnd: "exited").message == "exited after 8 of 10 answers")
  }

  @Test func `output that has arrived when the time limit expires is still read`() {
    let end = start + .seconds(1)
    var exchange = asked(1)
    #expect(exchange.next(at: end) == .transfer(within: .zero))
    exchange.receive("1\n")
    #expect(exchange.next(at: end) == .finish)

    exchange = asked(2, of: 5)
    #expect(exchange.next(at: end - .milliseconds(1)) == .transfer(within: .milliseconds(1)))
    exchange.receive("1\n")
    guard case .rest = exchange.next(at: end) else {
      Issue.record("the program gets no rest")
      return
    }
    #expect(exchange.next(at: end + .seconds(5)) == .transfer(within: .zero))
    guard case .giveUp(let fault) = exchange.next(at: end + .seconds(5)) else {
      Issue.record("the program has more time than it may")
      return
    }
    #expect(fault.message == "has answered 4 of 5 rows after 1.0 seconds")
  }

  @Test func `a program that does not read its question times out`() {
    var exchange = ask(1)
    #expect(exchange.next(at: start + .seconds(2)) == .transfer(within: .zero))
    guard case .giveUp = exchange.next(at: start + .seconds(2)) else {
      Issue.record("it waits for ever")
      return
    }
  }

  @Test func `the length of an endless answer and of all answers is bounded`() {
    let megabyte = [UInt8](repeating: 0x78, count: 1 << 20)
    var exchange = asked(100)
    var count = 0
    while case .transfer = exchange.next(at: start), count < 100 {
      exchange.receive(megabyte[...])
      count += 1
    }
    #expect(count == 17)
    guard case .giveUp(let endless) = exchange.next(at: start) else {
      Issue.record("there is no bound")
      return
    }
    #expect(endless.message == "has written 16 MB without a line feed")

    exchange = asked(100)
    count = 0
    while case .transfer = exchange.next(at: start), count < 100 {
      exchange.receive(megabyte.dropLast() + [0x0a])
      count += 1
    }
    #expect(count == 65)
    guard case .giveUp(let many) = exchange.next(at: start) else {
      Issue.record("there is no bound")
      return
    }
    #expect(many.message == "has written 64 MB of answers to 65 of 100 rows")
  }

  @Test func `a program that keeps writing rests for half the elapsed time, once per check`() {
    var exchange = asked(4)
    exchange.receive("1\n2\n")
    let now = start + .microseconds(800)
    #expect(exchange.next(at: now) == .rest(.microseconds(400)))
    #expect(exchange.next(at: now) == .transfer(within: .seconds(1) - .microseconds(800)))
    #expect(exchange.next(at: start + .seconds(0.5)) == .rest(.milliseconds(1)))
    // One that is fast is not left alone.
    exchange = asked(4)
    exchange.receive("1\n2\n")
    #expect(
      exchange.next(at: start + .microseconds(100)) == .transfer(within: .microseconds(999_900))
    )
  }
}

extension CommandExchange {
  fileprivate mutating func receive(_ text: String) { receive(Array(text.utf8)[...]) }
}
