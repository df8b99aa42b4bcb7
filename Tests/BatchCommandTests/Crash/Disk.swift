#if os(Linux)
import BatchTestSupport

/// A folder on a disk: what is on it for certain, and what a loss of power may take away.
///
/// Bytes are certain once their file was synchronized, names once the folder was. Of what is not
/// certain any part may be there: of a write any of its sectors.
struct Disk {
  /// A file that exists after a power failure.
  struct File: Equatable {
    var bytes: [UInt8]
    /// Its name in the run.
    var inode: UInt64
  }

  /// How much uncertain content survives.
  enum Survival: CaseIterable {
    case nothing, everything, someCalls, someSectors
  }

  /// How many uncertain names survive.
  enum NameSurvival: CaseIterable {
    /// Only some of the files that were renamed have their new names.
    case someRenames
    /// Everything up to some point in time, as with a journal of names.
    case beginning
  }

  static let sectorSize = 512

  fileprivate enum Change {
    case write([UInt8], at: Int)
    case truncate(to: Int)
  }

  fileprivate enum NameChange {
    case add(String, Int)
    case rename(String, String, Int)
    case remove(String)
  }

  fileprivate struct Content {
    var certain: [UInt8]
    var pending: [Change] = []
    var inode: UInt64
  }

  private let folder: String
  /// Whether syncing a file also syncs all earlier names, as on ext4, though no standard says so.
  private let isOrdered: Bool
  /// All files that ever existed, by number.
  private var contents: [Content] = []
  private var numbers: [UInt64: Int] = [:]
  private var names: [String: Int] = [:]
  private var certainNames: [String: Int] = [:]
  private var pendingNames: [NameChange] = []

  /// A folder whose files are all certain, each with its inode.
  init(_ folder: String, _ files: [String: File], isOrdered: Bool = false) {
    self.folder = folder
    self.isOrdered = isOrdered
    for (name, file) in files.sorted(by: { $0.key < $1.key }) {
      names[name] = add(file.inode, file.bytes)
    }
    certainNames = names
  }

  private mutating func add(_ inode: UInt64, _ bytes: [UInt8] = []) -> Int {
    contents.append(Content(certain: bytes, inode: inode))
    numbers[inode] = contents.count - 1
    return contents.count - 1
  }

  /// The name of a path in the folder; nil if it is elsewhere.
  private func name(_ path: String) -> String? {
    guard path.hasPrefix("\(folder)/") else { return nil }
    return String(path.dropFirst(folder.count + 1))
  }

  /// Does what a run did.
  mutating func carryOut(_ entry: CallLog.Entry) {
    if entry.path == folder, entry.effect == .sync { return makeNamesCertain() }
    guard let name = name(entry.path) else { return }
    switch entry.effect {
    case .create:
      let file = add(entry.inode)
      names[name] = file
      pendingNames.append(.add(name, file))
    case .rename(let other):
      guard let file = names.removeValue(forKey: name), let new = self.name(other) else { return }
      names[new] = file
      pendingNames.append(.rename(name, new, file))
    case .link(let other):
      guard let file = names[name], let new = self.name(other) else { return }
      names[new] = file
      pendingNames.append(.add(new, file))
    case .unlink:
      if names.removeValue(forKey: name) != nil { pendingNames.append(.remove(name)) }
    case .write, .truncate, .sync:
      // The path may belong to a file that is already removed.
      if let file = numbers[entry.inode] { contents[file].carryOut(entry.effect) }
      if isOrdered, entry.effect == .sync { makeNamesCertain() }
    }
  }

  private mutating func makeNamesCertain() {
    certainNames = names
    pendingNames = []
  }

  /// The content of the disk after a power failure at this moment.
  ///
  /// - Parameter generator: What decides about all that is not certain.
  /// - Returns: The files by name.
  func afterPowerLoss(using generator: inout SeededGenerator) -> [String: File] {
    var names = certainNames
    let survival = NameSurvival.allCases.randomElement(using: &generator) ?? .beginning
    let kept = Int.random(in: 0...pendingNames.count, using: &generator)
    for (index, change) in pendingNames.enumerated() {
      switch (change, survival) {
      case (_, .beginning): if index < kept { change.apply(to: &names) }
      case (.rename, .someRenames): if Bool.random(using: &generator) { change.apply(to: &names) }
      case (_, .someRenames): break
      }
    }
    var files: [String: File] = [:]
    let bytes = Survival.allCases.randomElement(using: &generator) ?? .nothing
    // In a fixed order, so that a seed reproduces the disk.
    for (name, file) in names.sorted(by: { $0.key < $1.key }) where !name.hasSuffix("-shm") {
      let content = contents[file]
      files[name] = File(
        bytes: content.afterPowerLoss(bytes, using: &generator),
        inode: content.inode
      )
    }
    return files
  }
}

extension Disk.NameChange {
  fileprivate func apply(to names: inout [String: Int]) {
    switch self {
    case .add(let name, let file): names[name] = file
    case .rename(let old, let new, let file):
      names[old] = nil
      names[new] = file
    case .remove(let name): names[name] = nil
    }
  }
}

extension Disk.Content {
  fileprivate mutating func carryOut(_ effect: CallLog.Entry.Effect) {
    switch effect {
    case .write(let bytes, let offset): pending.append(.write(bytes, at: offset))
    case .truncate(let count): pending.append(.truncate(to: count))
    case .sync:
      for change in pending { change.apply(to: &certain) }
      pending = []
    default: break
    }
  }

  fileprivate func afterPowerLoss(
    _ survival: Disk.Survival,
    using generator: inout SeededGenerator
  ) -> [UInt8] {
    var bytes = certain
    for change in pending {
      switch survival {
      case .nothing: break
      case .everything: change.apply(to: &bytes)
      case .someCalls: if Bool.random(using: &generator) { change.apply(to: &bytes) }
      case .someSectors:
        for part in change.sectors where Bool.random(using: &generator) { part.apply(to: &bytes) }
      }
    }
    return bytes
  }
}

extension Disk.Change {
  fileprivate func apply(to bytes: inout [UInt8]) {
    switch self {
    case .write(let new, let offset):
      let end = offset + new.count
      if end > bytes.count { bytes += [UInt8](repeating: 0, count: end - bytes.count) }
      bytes.replaceSubrange(offset..<end, with: new)
    case .truncate(let count):
      if count < bytes.count {
        bytes.removeSubrange(count...)
      } else {
        bytes += [UInt8](repeating: 0, count: count - bytes.count)
      }
    }
  }

  /// The parts of a write that are written as a whole or not at all.
  fileprivate var sectors: [Disk.Change] {
    guard case .write(let bytes, let offset) = self else { return [self] }
    var parts: [Disk.Change] = []
    var start = 0
    while start < bytes.count {
      let place = offset + start
      let count = min(Disk.sectorSize - place % Disk.sectorSize, bytes.count - start)
      parts.append(.write(Array(bytes[start..<start + count]), at: place))
      start += count
    }
    return parts
  }
}
#endif
