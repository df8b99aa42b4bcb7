/// Finds the indices of entries by their hashes, in open addressing with steps of one.
///
/// A slot has 32 bits of a hash and an index, so that growing needs no entries, and that different
/// entries are seldom compared.
struct IndexTable: ~Copyable {
  private var slots = Store<UInt64>()
  /// Slots are numbered by the highest bits of hashes.
  private var shift: UInt64 = 64 - 10
  private var mask = (1 << 10) - 1
  private(set) var count = 0

  init() { slots.append(repeating: 0, count: mask + 1) }

  /// The index of the entry that is the same, or else ``count``, as which it is then known.
  @inline(__always)
  mutating func index(_ hash: UInt64, isSame: (Int) -> Bool) -> Int {
    var slot = Int(truncatingIfNeeded: hash &>> shift)
    let tag = hash & 0xFFFF_FFFF_0000_0000
    while true {
      let content = unsafe slots.base[slot]
      if content == 0 { break }
      let index = Int(truncatingIfNeeded: content & 0xFFFF_FFFF) &- 1
      if content & 0xFFFF_FFFF_0000_0000 == tag, isSame(index) { return index }
      slot = (slot &+ 1) & mask
    }
    count &+= 1
    slots[slot] = tag | UInt64(truncatingIfNeeded: count)
    if count &* 2 > mask { grow() }
    return count &- 1
  }

  @inline(never)
  private mutating func grow() {
    var larger = Store<UInt64>(capacity: slots.count * 2)
    larger.append(repeating: 0, count: slots.count * 2)
    shift -= 1
    mask = mask * 2 + 1
    for index in 0..<slots.count where slots[index] != 0 {
      var slot = Int(truncatingIfNeeded: slots[index] &>> shift)
      while larger[slot] != 0 { slot = (slot &+ 1) & mask }
      larger[slot] = slots[index]
    }
    slots = larger
  }
}
