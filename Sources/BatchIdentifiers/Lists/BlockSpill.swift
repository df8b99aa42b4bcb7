internal import SystemPackage

/// Keeps the first blocks of a list in memory and the others in a temporary file, so that the
/// memory for a selection does not grow with the table.
///
/// If no file can be written, for instance because the disk is full, blocks stay in memory.
package final class BlockSpill: Sendable {
  static let memoryLimit = 4 << 20

  enum Place: Sendable {
    /// In memory, with its padding.
    case memory([UInt8])
    case file(offset: Int)
  }

  private struct State {
    var memory: Int
    var file: TemporaryFile?
    var fileByteCount = 0
    var isRefused = false
  }

  private let folders: [FilePath]
  private let state: Lock<State>

  /// For the blocks of one list, whose parts may be made by several threads.
  package convenience init() {
    self.init(memoryLimit: Self.memoryLimit, in: TemporaryFile.folders)
  }

  init(memoryLimit: Int, in folders: [FilePath]) {
    self.folders = folders
    state = Lock(State(memory: memoryLimit))
  }

  var fileByteCount: Int { state.withLock { $0.fileByteCount } }

  /// For messages; nil if there is no file.
  var folder: String? { state.withLock { $0.file?.folder.string } }

  /// Keeps a block of `count` bytes, with its padding.
  func keep(_ block: consuming [UInt8], count: Int) -> Place {
    let block = block
    let place = state.withLock { state -> Int? in
      if state.memory >= count || state.isRefused {
        state.memory -= count
        return nil
      }
      state.file = state.file ?? TemporaryFile(in: folders)
      let offset = state.fileByteCount
      guard let file = state.file, file.write(block[..<count], at: offset) else {
        state.isRefused = true
        return nil
      }
      state.fileByteCount += count
      return offset
    }
    return place.map { .file(offset: $0) } ?? .memory(block)
  }

  func read(_ count: Int, into bytes: inout [UInt8], at offset: Int) throws(BatchError) {
    guard let file = state.withLock({ $0.file }) else {
      preconditionFailure("a block in a file that does not exist")
    }
    try file.read(count, into: &bytes, at: offset)
  }
}
