import BatchRuns
import BatchIdentifiers
import BatchTestSupport
import Testing

@testable import BatchSQLite

@Suite struct UndoRecordTests {
  @Test(arguments: 1...40) func `an undo record returns its values`(seed: Int) throws {
    var generator = SeededGenerator(seed: UInt64(seed))
    let record = Self.record(&generator)
    let packed = record.packed
    let shape = UndoShape(
      key: (0..<record.keys.columnCount).map { "k\($0)" },
      columns: (0..<record.before.columnCount).map { "c\($0)" },
      kind: record.after.columnCount == 0 ? .deletion : .update
    )
    let read = try UndoRecord(packed, shape)
    #expect(read.count == record.count)
    for (part, other) in [
      (read.keys, record.keys), (read.before, record.before), (read.after, record.after),
    ] {
      #expect(part.count == record.count)
      #expect(part.columnCount == other.columnCount)
      for row in 0..<record.count { #expect(part.isSame(row, as: other, row)) }
    }
    for end in 0..<packed.count {
      let error = #expect(throws: BatchError.self) { try UndoRecord(Array(packed[..<end]), shape) }
      #expect(error?.code == .damagedFile)
    }
    for place in packed.indices {
      var changed = packed
      changed[place] ^= 1 << UInt8(generator.next() % 8)
      #expect(throws: BatchError.self) { try UndoRecord(changed, shape) }
    }
  }

  @Test func `invalid bytes of an undo record are refused without trapping`() {
    var generator = SeededGenerator(seed: 9)
    for _ in 0..<2_000 {
      let count = Int.random(in: 0...40, using: &generator)
      let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) }
      // Some are values by chance: all of them must survive.
      let block = try? PackedValues.unpack(bytes.span, columns: 2, count: 3)
      #expect(block == nil || block?.count == 3)
    }
  }

  @Test func `an undo record stores equal differences in almost no space`() throws {
    var keys = ValueBlock(columns: 1, capacity: 1000, count: 1000)
    var before = ValueBlock(columns: 1, capacity: 1000, count: 1000)
    var after = before
    var generator = SeededGenerator(seed: 4)
    for row in 0..<1000 {
      let value = Int64.random(in: -60...60, using: &generator)
      keys.set(row, 0, integer: Int64(row + 1))
      before.set(row, 0, integer: value)
      after.set(row, 0, integer: value + 1)
    }
    let record = UndoRecord(RowsBefore(keys: keys, values: before), after: after)
    #expect(record.packed.count < 1_100)
  }

  private static func record(_ generator: inout SeededGenerator) -> UndoRecord {
    let count = Int.random(in: 1...30, using: &generator)
    let isDeletion = Bool.random(using: &generator)
    let columns = Int.random(in: 1...4, using: &generator)
    let before = block(columns, count, &generator)
    var after = block(columns, count, &generator)
    if Bool.random(using: &generator) { after = before }
    return UndoRecord(
      RowsBefore(
        keys: block(Int.random(in: 1...2, using: &generator), count, &generator),
        values: before
      ),
      after: isDeletion ? ValueBlock(columns: 0, capacity: count, count: count) : after
    )
  }

  /// Values of any kind; in a column mostly of one.
  private static func block(
    _ columns: Int,
    _ count: Int,
    _ generator: inout SeededGenerator
  ) -> ValueBlock {
    var block = ValueBlock(columns: columns, capacity: count, count: count)
    for column in 0..<columns {
      let usual = Int.random(in: 0...6, using: &generator)
      for row in 0..<count {
        let isUsual = Int.random(in: 0...4, using: &generator) > 0
        let kind = isUsual ? usual : Int.random(in: 0...6, using: &generator)
        let value: SQLValue =
          switch kind {
          case 0: .null
          case 1: .integer(.random(in: -100...100, using: &generator))
          case 2: .integer(.random(in: .min ... .max, using: &generator))
          case 3: .real(Double(Int.random(in: -9_999...9_999, using: &generator)) / 100)
          case 4:
            .real(
              [-0.0, .infinity, 1e300, .pi, .leastNonzeroMagnitude].randomElement(using: &generator)
                ?? 0
            )
          case 5: .text(String(repeating: "é", count: Int.random(in: 0...9, using: &generator)))
          default: .blob([0, 255, UInt8.random(in: 0...255, using: &generator)])
          }
        do { try block.set(row, column, value) } catch { Issue.record(error) }
      }
    }
    return block
  }
}
