#if os(Linux)
import BatchTestSupport
import Testing

/// What a loss of power leaves of files.
@Suite struct DiskTests {
  private var disk = Disk("/d", ["old": Disk.File(bytes: [1, 2, 3], inode: 1)])

  private mutating func carryOut(
    _ effect: CallLog.Entry.Effect,
    _ path: String,
    _ inode: UInt64 = 0
  ) {
    disk.carryOut(CallLog.Entry(effect: effect, path: path, inode: inode))
  }

  /// All that may be left, over many seeds.
  private func remains() -> Set<[String: [UInt8]]> {
    Set(
      (0..<500 as Range<UInt64>).map { seed in
        var generator = SeededGenerator(seed: seed)
        return disk.afterPowerLoss(using: &generator).mapValues(\.bytes)
      }
    )
  }

  @Test mutating func `the simulated disk keeps bytes after their file is synchronized`() {
    carryOut(.write([9], at: 1), "/d/old", 1)
    #expect(remains() == [["old": [1, 2, 3]], ["old": [1, 9, 3]]])
    carryOut(.sync, "/d/old", 1)
    #expect(remains() == [["old": [1, 9, 3]]])
    carryOut(.truncate(to: 1), "/d/old", 1)
    carryOut(.sync, "/d", 0)
    #expect(remains() == [["old": [1, 9, 3]], ["old": [1]]])
  }

  @Test mutating func `the simulated disk may lose any of several writes and any sector of one`() {
    carryOut(.write([8], at: 0), "/d/old", 1)
    carryOut(.write([9], at: 4), "/d/old", 1)
    #expect(
      remains() == [
        ["old": [1, 2, 3]], ["old": [8, 2, 3]], ["old": [1, 2, 3, 0, 9]], ["old": [8, 2, 3, 0, 9]],
      ]
    )
    carryOut(.sync, "/d/old", 1)
    carryOut(.write([UInt8](repeating: 7, count: 1024), at: 256), "/d/old", 1)
    let sums = Set(remains().map { $0["old"]?.count { $0 == 7 } })
    // 256 bytes, a sector, and 256 bytes.
    #expect(sums == [0, 256, 512, 768, 1024])
  }

  @Test
  mutating func `the simulated disk keeps a new file's name after its folder is synchronized`() {
    carryOut(.create, "/d/new", 2)
    carryOut(.write([5], at: 0), "/d/new", 2)
    carryOut(.sync, "/d/new", 2)
    #expect(remains() == [["old": [1, 2, 3]], ["old": [1, 2, 3], "new": [5]]])
    carryOut(.sync, "/d", 0)
    #expect(remains() == [["old": [1, 2, 3], "new": [5]]])
    carryOut(.unlink, "/d/new")
    #expect(remains() == [["old": [1, 2, 3]], ["old": [1, 2, 3], "new": [5]]])
  }

  @Test mutating func `the simulated disk has a renamed file under its old or its new name`() {
    carryOut(.create, "/d/new", 2)
    carryOut(.write([5], at: 0), "/d/new", 2)
    carryOut(.sync, "/d/new", 2)
    carryOut(.sync, "/d", 0)
    carryOut(.rename(to: "/d/old"), "/d/new")
    #expect(remains() == [["old": [1, 2, 3], "new": [5]], ["old": [5]]])
    carryOut(.sync, "/d", 0)
    #expect(remains() == [["old": [5]]])
  }

  @Test mutating func `an ordered simulated disk keeps names once any later file is synchronized`()
  {
    let files = ["old": Disk.File(bytes: [1, 2, 3], inode: 1)]
    for isOrdered in [false, true] {
      disk = Disk("/d", files, isOrdered: isOrdered)
      carryOut(.create, "/d/new", 2)
      carryOut(.sync, "/d/old", 1)
      #expect(remains().contains(["old": [1, 2, 3]]) == !isOrdered)
    }
  }

  @Test mutating func `the simulated disk ignores files elsewhere and shared memory`() {
    carryOut(.create, "/elsewhere/new", 3)
    carryOut(.create, "/d/test.db-shm", 4)
    carryOut(.sync, "/d", 0)
    carryOut(.write([1], at: 0), "standard output")
    #expect(remains() == [["old": [1, 2, 3]]])
  }
}
#endif
