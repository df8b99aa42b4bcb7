import Foundation

/// The stores of Core Data in `Fixtures/core-data`, whose page says who made them.
public enum CoreDataFixture: String, CaseIterable, Sendable {
  /// Cars, sports cars and persons.
  case cars = "SampleModel_V1.sqlite"
  /// Books, graphic novels, pages, authors and feedbacks.
  case books = "SampleModel2_V1.sqlite"
  /// Persons and companies, with relationships of every kind.
  case families = "Families.sqlite"

  /// The UUID of the store.
  public var uuid: String {
    switch self {
    case .cars: "753753D3-A961-4901-AB05-8CC48B1D3853"
    case .books: "C9CB0B35-ED6A-4042-BE5C-1B911AC00B2A"
    case .families: "B0E2A0C8-6B6A-4C57-9F0D-3B6B8C9D1E2F"
    }
  }

  /// Where it is; nobody writes to it there.
  public var path: String {
    "\(Repository.path)/Tests/BatchTestSupport/Fixtures/core-data/\(rawValue)"
  }

  /// A copy of it, under a name.
  @discardableResult
  public func copy(
    to directory: TemporaryDirectory,
    as name: String = "store.sqlite"
  ) throws -> String {
    let copy = directory.file(name)
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: copy)
    return copy
  }
}
