import BatchRuns
import BatchPlatform

package struct DatabaseUser: Sendable, Encodable {
  package let process: Int32
  /// The name of its program; nil if the kernel does not reveal it.
  package let program: String?
  /// What its current locks are for: `reads`, `writes`, `checkpoints`, `recovers`.
  package let activities: [String]

  /// Whether the process runs the same executable file as this one.
  package var runsThisProgram: Bool {
    #if canImport(Darwin)
    false
    #else
    FileNumber("/proc/\(process)/exe").map { $0 == FileNumber("/proc/self/exe") } ?? false
    #endif
  }

  /// The process in words: `python3 (process 4711)`.
  package var words: String {
    program.map { "\($0) (process \(process))" } ?? "process \(process)"
  }
}

extension DatabaseUser {
  /// The other processes that have a database open, as far as the kernel reveals: processes of this
  /// container, and those without locks only if this user owns them.
  ///
  /// Opens no file, because closing it would release this process's locks on it.
  package static func others(ofDatabase path: String) -> [DatabaseUser] {
    #if canImport(Darwin)
    []
    #else
    let files = ["", "-wal", "-shm"].map { FileNumber("\(path)\($0)") }
    var activities: [Int32: Set<String>] = [:]
    for lock in FileLock.all {
      guard let file = files.firstIndex(of: lock.file) else { continue }
      let activity = file == 2 ? lock.activityOnIndex : lock.activityOnDatabase
      activities[lock.process, default: []].formUnion(activity.map { [$0] } ?? [])
    }
    for process in folderEntries(of: "/proc").compactMap({ Int32($0) })
    where activities[process] == nil {
      let opened = folderEntries(of: "/proc/\(process)/fd").contains { descriptor in
        FileNumber("/proc/\(process)/fd/\(descriptor)").map(files.contains) == true
      }
      if opened { activities[process] = [] }
    }
    activities[getpid()] = nil
    return activities.keys.sorted().map { process in
      DatabaseUser(
        process: process,
        program: kernelText(at: "/proc/\(process)/comm"),
        activities: activities[process, default: []].sorted()
      )
    }
    #endif
  }
}

#if !canImport(Darwin)
private struct FileNumber: Equatable {
  let device: UInt64
  let inode: UInt64

  init?(_ path: String) {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { return nil }
    device = UInt64(status.st_dev)
    inode = UInt64(status.st_ino)
  }

  /// Parses the file of a lock as the kernel writes it: `fe:00:16328211`.
  init?(ofLock text: Substring) {
    let parts = text.split(separator: ":")
    guard parts.count == 3, let major = UInt64(parts[0], radix: 16),
      let minor = UInt64(parts[1], radix: 16), let inode = UInt64(parts[2])
    else { return nil }
    // Combined as by `makedev`.
    device = (major & 0xfff) << 8 | (major & ~0xfff) << 32 | minor & 0xff | (minor & ~0xff) << 12
    self.inode = inode
  }
}

private struct FileLock {
  let process: Int32
  let file: FileNumber
  private let isExclusive: Bool
  private let first: Int
  private let last: Int

  /// The locks that processes of this container hold.
  static var all: [FileLock] {
    // Each lock takes a line of about 60 bytes.
    kernelText(at: "/proc/locks", upTo: 1 << 20)?.split(separator: "\n").compactMap { FileLock($0) }
      ?? []
  }

  /// Parses `1: POSIX  ADVISORY  WRITE 30759 fe:00:16328211 123 123`; nil for a process that waits
  /// for a lock.
  private init?(_ line: Substring) {
    let fields = line.split(separator: " ")
    guard fields.count == 8, fields[1] == "POSIX", let process = Int32(fields[4]), process > 0,
      let file = FileNumber(ofLock: fields[5]), let first = Int(fields[6])
    else { return nil }
    self.process = process
    self.file = file
    isExclusive = fields[3] == "WRITE"
    self.first = first
    last = Int(fields[7]) ?? .max
  }

  private func includes(_ position: Int) -> Bool { (first...max(first, last)).contains(position) }

  /// The purpose of a lock on the log's index: <https://www.sqlite.org/walformat.html#locks>.
  var activityOnIndex: String? {
    if isExclusive {
      if includes(122) { return "recovers" }
      if includes(120) { return "writes" }
      return includes(121) ? "checkpoints" : nil
    }
    return (123...127).contains(where: includes) ? "reads" : nil
  }

  /// The purpose of a lock on the database.
  ///
  /// With a log, every connection holds one for reading.
  ///
  /// See <https://www.sqlite.org/lockingv3.html>.
  var activityOnDatabase: String? {
    isExclusive && first >= 0x4000_0000 ? "writes" : nil
  }
}

/// The names in a folder; none if it cannot be read.
private func folderEntries(of path: String) -> [String] {
  (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
}
#endif
