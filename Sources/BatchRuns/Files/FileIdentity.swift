/// The identity of a file, whatever its name.
package struct FileIdentity: Codable, Hashable, Sendable {
  package var device: UInt64
  package var inode: UInt64
}
