import BatchObjects
import SystemPackage

enum SavedList: Example {
  static let summary = "a list of identifiers in a file, worked off in two sittings"

  static func run() async throws {
    let container = try await Billing.open(
      """
      WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2500)
      INSERT INTO invoices (number, cents) SELECT 'A-' || i, i FROM n;
      """
    )
    let path = FilePath("remind.ids")
    let list = try ModelContext(container).fetchIdentifiers(
      FetchRequest(entity: "Invoice", where: "cents > 500")
    )
    try IdentifierFile.create(at: path, list: list)

    /// Works off the rest of the list, or as many chunks of it as are allowed.
    func remind(chunks: Int = .max) throws -> Int {
      let file = try IdentifierFile(opening: path)
      // A record in the file's log for each chunk that is done.
      let done = file.recordCount
      var log = try IdentifierFileLog(appendingTo: path)
      var count = 0
      for start in stride(from: done * 1000, to: file.count, by: 1000).prefix(chunks) {
        let context = ModelContext(container)
        for identifier in try file.identifiers(in: start..<min(start + 1000, file.count)) {
          let invoice = try context.existingModel(for: identifier, as: Invoice.self)
          invoice.note = (invoice.note ?? "") + "reminded "
          count += 1
        }
        try context.save()
        // A process that is killed just here does the chunk again; `BatchRun` would not.
        try log.append(kind: 1, payload: [])
      }
      return count
    }
    print("list: \(list.count)")
    print("first sitting: \(try remind(chunks: 1))")
    print("second sitting: \(try remind())")
    print("third sitting: \(try remind())")
    let reminded = FetchRequest(entity: "Invoice", where: "note = 'reminded '")
    print("reminded once: \(try ModelContext(container).fetchCount(reminded))")
  }
}
